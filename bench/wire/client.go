package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Client calls one server over a few connections that all callers share, as
// programs do that serve many users.
type Client struct {
	conns  []*grpc.ClientConn
	frames sync.Pool
}

// Dial prepares connections; they are made by the first calls. Without options that say
// otherwise they are in plain text.
func Dial(address string, connections int, options ...grpc.DialOption) (*Client, error) {
	c := &Client{frames: sync.Pool{New: func() any { return &Frame{Bytes: make([]byte, 0, 4<<10)} }}}
	options = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), Calls(), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20)),
	}, options...)
	for range connections {
		conn, err := grpc.NewClient(address, options...)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.conns = append(c.conns, conn)
	}
	return c, nil
}

// Close ends the connections.
func (c *Client) Close() error {
	var all []error
	for _, conn := range c.conns {
		all = append(all, conn.Close())
	}
	return errors.Join(all...)
}

// Stream makes a call with one request and shows every message of its answer.
// Calls with the same lane share a connection. The message is valid until
// see returns. io.EOF from see ends the call early and is no error.
func (c *Client) Stream(ctx context.Context, lane int, method string, request []byte, see func([]byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := c.conns[lane%len(c.conns)].NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if err = s.SendMsg(request); err == nil {
		err = s.CloseSend()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", method, err)
	}
	frame, _ := c.frames.Get().(*Frame)
	defer c.frames.Put(frame)
	for {
		err := s.RecvMsg(frame)
		if err == nil {
			if err = see(frame.Bytes); err == nil {
				continue
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return fmt.Errorf("%s: %w", method, err)
	}
}

// Call makes a call with one answer.
func (c *Client) Call(ctx context.Context, lane int, method string, request []byte) ([]byte, error) {
	var f Frame
	if err := c.conns[lane%len(c.conns)].Invoke(ctx, method, request, &f); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return f.Bytes, nil
}
