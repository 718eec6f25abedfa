//! Lists of millions of small items that grow without being moved and are given back piece by piece while they are
//! consumed, so that what is made of them can take their place.

const CHUNK: usize = 1 << 14;

/// Items in order, in pieces of equal length.
#[derive(Debug)]
pub(crate) struct Chunks<T> {
    pieces: Vec<Piece<T>>,
}

#[derive(Debug)]
struct Piece<T> {
    items: Vec<T>,
    taken: usize,
}

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

impl<T: Copy> Chunks<T> {
    pub(crate) fn len(&self) -> usize {
        self.pieces.last().map_or(0, |last| (self.pieces.len() - 1) * CHUNK + last.items.len())
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        match self.pieces.last_mut() {
            Some(last) if last.items.len() < CHUNK => last.items.push(item),
            _ => {
                let mut items = Vec::with_capacity(CHUNK);
                items.push(item);
                self.pieces.push(Piece { items, taken: 0 });
            }
        }
    }

    /// The item at `index`, where there is one and its piece was not yet given back.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<T> {
        self.pieces.get(index / CHUNK)?.items.get(index % CHUNK).copied()
    }

    /// Replaces the item at `index`, where there is one.
    #[inline]
    pub(crate) fn set(&mut self, index: usize, item: T) {
        let piece = self.pieces.get_mut(index / CHUNK);
        if let Some(place) = piece.and_then(|piece| piece.items.get_mut(index % CHUNK)) {
            *place = item;
        }
    }

    /// As [`get`](Self::get), for the last time: once every item of a piece was taken, its memory is given back.
    pub(crate) fn take(&mut self, index: usize) -> Option<T> {
        let item = self.get(index)?;
        let piece = &mut self.pieces[index / CHUNK];
        piece.taken += 1;
        if piece.taken == CHUNK {
            piece.items = Vec::new();
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_keep_their_places_and_a_piece_that_was_taken_is_given_back() {
        let mut chunks = Chunks::default();
        assert_eq!((chunks.len(), chunks.get(0)), (0, None));
        for item in 0..CHUNK as u32 + 3 {
            chunks.push(item);
        }
        chunks.set(7, 99);
        assert_eq!((chunks.len(), chunks.get(7), chunks.get(CHUNK + 2)), (CHUNK + 3, Some(99), Some(CHUNK as u32 + 2)));
        assert_eq!(chunks.get(CHUNK + 3), None);
        assert!((0..CHUNK).all(|index| chunks.take(index).is_some()));
        assert_eq!(chunks.pieces[0].items.capacity(), 0);
        assert_eq!(chunks.take(CHUNK), Some(CHUNK as u32));
    }
}
