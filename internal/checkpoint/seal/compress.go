package seal

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

const (
	// worthwhile is the size from which on compressing is tried.
	worthwhile = 512
	// largest is the size up to which it is tried: nothing that claims to be
	// larger is unpacked.
	largest = 64 << 20
)

func newEncoder() (*zstd.Encoder, error) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20), zstd.WithSingleSegment(true))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return e, nil
}

func newDecoder() (*zstd.Decoder, error) {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxMemory(largest), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return d, nil
}

// compress returns the record's length and its compressed form, when that is
// shorter than the record.
func (b *Box) compress(record string) (small string, ok bool) {
	if b.pack == nil || len(record) < worthwhile || len(record) > largest {
		return "", false
	}
	out := make([]byte, 0, len(record)/2)
	out = binary.AppendUvarint(out, uint64(len(record)))
	out = b.pack.EncodeAll([]byte(record), out)
	return string(out), len(out) < len(record)
}

// decompress is the inverse of compress. It makes no more room than the record
// says it takes, and no more than largest.
func (b *Box) decompress(small string) (string, error) {
	size, n := binary.Uvarint([]byte(small[:min(len(small), binary.MaxVarintLen64)]))
	if n <= 0 || size > largest {
		return "", corrupt("its length is damaged")
	}
	out, err := b.open.DecodeAll([]byte(small[n:]), make([]byte, 0, size))
	if err != nil {
		return "", corrupt("it does not unpack: %v", err)
	}
	if uint64(len(out)) != size {
		return "", corrupt("it unpacks to %d bytes, want %d", len(out), size)
	}
	return string(out), nil
}
