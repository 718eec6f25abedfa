import java.nio.ByteBuffer;
import java.util.Random;
import java.util.zip.CRC32;

/** Direct buffers of changing sizes, 24 at a time, written and dropped: {@code java DirectBuffers.java BUFFERS}. */
public final class DirectBuffers {
    private static final int KEPT = 24;

    public static void main(String[] arguments) {
        Random random = new Random(7);
        ByteBuffer[] kept = new ByteBuffer[KEPT];
        CRC32 checksum = new CRC32();
        for (int count = Integer.parseInt(arguments[0]); count > 0; count--) {
            int slot = random.nextInt(KEPT);
            ByteBuffer dropped = kept[slot];
            if (dropped != null) {
                checksum.update(dropped.flip());
            }
            // From 1 to 16 MiB, all magnitudes alike.
            kept[slot] = filled((int) (Math.pow(16, random.nextDouble()) * (1 << 20)), random);
        }
        System.out.println(checksum.getValue());
    }

    private static ByteBuffer filled(int bytes, Random random) {
        ByteBuffer buffer = ByteBuffer.allocateDirect(bytes);
        long value = random.nextLong();
        while (buffer.remaining() >= Long.BYTES) {
            buffer.putLong(value);
            value = value * 6364136223846793005L + 1442695040888963407L;
        }
        return buffer;
    }
}
