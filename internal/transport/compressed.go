package transport

import (
	"io"
	goruntime "runtime"
	"sync"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip"
)

// inTurn is a compressor that expands a few messages at a time: what a small one
// becomes is not known before.
type inTurn struct {
	encoding.Compressor

	turns chan struct{}
}

// Clients may choose gzip, and endpoints may answer with it.
func init() { //nolint:gochecknoinits // gRPC wants compressors to be registered here
	encoding.RegisterCompressor(inTurn{
		Compressor: encoding.GetCompressor(gzip.Name), turns: make(chan struct{}, max(2, goruntime.GOMAXPROCS(0))),
	})
}

// Decompress waits for its turn, which ends when the reader is closed.
func (c inTurn) Decompress(r io.Reader) (io.Reader, error) {
	c.turns <- struct{}{}
	over := sync.OnceFunc(func() { <-c.turns })
	inside, err := c.Compressor.Decompress(r)
	if err != nil {
		over()
		return nil, err
	}
	return &expanding{inside, over}, nil
}

// expanding is a message that is being expanded.
type expanding struct {
	io.Reader

	over func()
}

// Close gives the turn to another message.
func (e *expanding) Close() error {
	defer e.over()
	if c, ok := e.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}
