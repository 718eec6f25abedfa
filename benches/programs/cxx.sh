#!/bin/sh
# Builds four files that use the standard library at -O2, two at a time, and runs what comes of them.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cat >shared.h <<'END'
#include <string>
#include <vector>
using Words = std::vector<std::string>;
Words words(unsigned count);
unsigned matches(const Words &words);
unsigned families(const Words &words);
END
cat >words.cpp <<'END'
#include "shared.h"
#include <iomanip>
#include <random>
#include <sstream>
Words words(unsigned count) {
    std::mt19937 random(7);
    Words all;
    for (unsigned i = 0; i < count; i++) {
        std::ostringstream text;
        text << std::hex << std::setw(4) << std::setfill('x') << random() % 5000 << '-' << i % 97;
        all.push_back(text.str());
    }
    return all;
}
END
cat >matches.cpp <<'END'
#include "shared.h"
#include <algorithm>
#include <regex>
unsigned matches(const Words &words) {
    const std::regex pattern("(x+)([0-9a-f]*)-([1-9]?[02468])", std::regex::optimize);
    return std::count_if(words.begin(), words.end(), [&](const std::string &word) {
        std::smatch parts;
        return std::regex_match(word, parts, pattern) && parts[2].length() == 2;
    });
}
END
cat >families.cpp <<'END'
#include "shared.h"
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <unordered_map>
unsigned families(const Words &words) {
    std::map<std::string, std::set<std::string>> by_start;
    std::unordered_map<std::string, unsigned> ends;
    for (const auto &word : words) {
        by_start[word.substr(0, 3)].insert(word);
        ends[word.substr(5)]++;
    }
    std::vector<std::tuple<unsigned, std::string>> order;
    for (const auto &[start, all] : by_start) order.emplace_back(all.size(), start);
    std::stable_sort(order.begin(), order.end(), std::greater<>());
    const auto add = [](unsigned total, const auto &one) { return total * 31 + std::get<0>(one); };
    return std::accumulate(order.begin(), order.end(), static_cast<unsigned>(ends.size()), add);
}
END
cat >main.cpp <<'END'
#include "shared.h"
#include <future>
#include <iostream>
int main() {
    const Words all = words(60000);
    auto matching = std::async(std::launch::async, [&] { return matches(all); });
    std::cout << families(all) << ' ' << matching.get() << '\n';
}
END
cat >Makefile <<'END'
CXXFLAGS = -O2 -g -fdebug-prefix-map=$(CURDIR)=. -std=c++17 -pthread
built: words.o matches.o families.o main.o
	$(CXX) -pthread $^ -o $@
%.o: %.cpp shared.h
	$(CXX) $(CXXFLAGS) -c $< -o $@
END
make -s -j2 CXX=g++
cat ./*.o | cksum
./built
