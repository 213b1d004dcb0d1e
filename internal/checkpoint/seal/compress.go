package seal

import (
	"encoding/binary"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

const (
	// minCompressBytes is the size from which on compressing is tried.
	minCompressBytes = 512
	// maxCompressBytes is the size up to which it is tried: nothing that claims to be
	// larger is unpacked.
	maxCompressBytes = 64 << 20
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
		zstd.WithDecoderMaxMemory(maxCompressBytes), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return d, nil
}

// compressRecord returns the record's length and its compressed form, and reports whether
// that is shorter than the record.
func compressRecord(encoder *zstd.Encoder, record string) (small string, ok bool) {
	if encoder == nil || len(record) < minCompressBytes || len(record) > maxCompressBytes {
		return "", false
	}
	out := make([]byte, 0, len(record)/2)
	out = binary.AppendUvarint(out, uint64(len(record)))
	out = encoder.EncodeAll([]byte(record), out)
	return string(out), len(out) < len(record)
}

// decompressRecord is the inverse of compressRecord. It allocates no more than the length
// in the record, and no more than maxCompressBytes.
func (b *Box) decompressRecord(small string) (string, error) {
	size, n := binary.Uvarint([]byte(small[:min(len(small), binary.MaxVarintLen64)]))
	if n <= 0 || size > maxCompressBytes {
		return "", corruptError("its length is damaged")
	}
	out, err := b.decoder.DecodeAll([]byte(small[n:]), make([]byte, 0, size))
	if err != nil {
		return "", corruptError("it does not unpack: %v", err)
	}
	if uint64(len(out)) != size {
		return "", corruptError("it unpacks to %d bytes, want %d", len(out), size)
	}
	return string(out), nil
}
