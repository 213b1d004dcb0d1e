package flow

import (
	"io"
	goruntime "runtime"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
)

// limitedCompressor expands only a few messages at a time, because the size of an
// expanded message is not known before.
type limitedCompressor struct {
	encoding.Compressor

	slots chan struct{}
}

// Clients may choose gzip, and endpoints may answer with it.
func init() { //nolint:gochecknoinits // gRPC wants compressors to be registered here
	encoding.RegisterCompressor(limitedCompressor{
		Compressor: encoding.GetCompressor(gzip.Name), slots: make(chan struct{}, max(2, goruntime.GOMAXPROCS(0))),
	})
}

// Decompress waits for a slot, which the close of the reader releases.
func (c limitedCompressor) Decompress(r io.Reader) (io.Reader, error) {
	c.slots <- struct{}{}
	over := sync.OnceFunc(func() { <-c.slots })
	inside, err := c.Compressor.Decompress(r)
	if err != nil {
		over()
		return nil, err
	}
	return &limitedReader{inside, over}, nil
}

// limitedReader is a message that is being expanded.
type limitedReader struct {
	io.Reader

	release func()
}

// Close releases the slot.
func (l *limitedReader) Close() error {
	defer l.release()
	if c, ok := l.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
