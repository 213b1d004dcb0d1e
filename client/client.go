// Package client calls a graphd server: it starts and follows runs, answers questions and reads
// threads. Streams and waits go on after a broken connection, where they were. Errors of the server
// are an [*Error], with a [Reason] to branch on.
//
//	c, err := client.Dial("localhost:7700")
//	outcome, err := c.Invoke(ctx, client.Run{Graph: "orders", Thread: "t-1", Input: order})
//	if outcome.Waits() {
//		outcome, err = c.Resume(ctx, "t-1", client.AnswerTo(outcome.Questions[0], "yes"))
//	}
//	paid, err := client.Output[Order](outcome)
package client

import (
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	graphdv1 "github.com/graphd-dev/graphd/gen/graphd/v1"
)

// Client calls a server. Its methods may be called at the same time.
type Client struct {
	conn      grpc.ClientConnInterface
	close     func() error
	retries   backoff
	isReached atomic.Bool // a server has answered before
}

// Dial makes a client of the server at an address, HOST:PORT, or in another form of gRPC like
// dns:///HOST:PORT. Without options of transport security the connection is in plain text. Nothing is
// sent before the first call. The error is an [*AddressError], or that of an option.
func Dial(address string, options ...grpc.DialOption) (*Client, error) {
	if err := CheckAddress(address); err != nil {
		return nil, err
	}
	all := append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(windowSize), grpc.WithStaticConnWindowSize(windowSize),
	}, options...)
	conn, err := grpc.NewClient(address, all...)
	if err != nil {
		return nil, err
	}
	c := New(conn)
	c.close = conn.Close
	return c, nil
}

// windowSize is how many bytes of one call a server may send before the client has read them. A window
// that gRPC chooses itself costs a ping for each message.
const windowSize = 1 << 20

// New makes a client of a connection, which stays that of the caller.
func New(conn grpc.ClientConnInterface) *Client {
	return &Client{conn: conn, close: func() error { return nil }, retries: defaultBackoff()}
}

// Close closes the connection that Dial has made.
func (c *Client) Close() error { return c.close() }

// Graphs returns the calls of runs, as generated.
func (c *Client) Graphs() graphdv1.GraphServiceClient { return graphdv1.NewGraphServiceClient(c.conn) }

// Threads returns the calls of threads, as generated.
func (c *Client) Threads() graphdv1.ThreadServiceClient {
	return graphdv1.NewThreadServiceClient(c.conn)
}

// Interrupts returns the calls of questions, as generated.
func (c *Client) Interrupts() graphdv1.InterruptServiceClient {
	return graphdv1.NewInterruptServiceClient(c.conn)
}

// Registry returns the calls of graphs, as generated.
func (c *Client) Registry() graphdv1.RegistryServiceClient {
	return graphdv1.NewRegistryServiceClient(c.conn)
}

// Assistants returns the calls of assistants, as generated.
func (c *Client) Assistants() graphdv1.AssistantServiceClient {
	return graphdv1.NewAssistantServiceClient(c.conn)
}

// Crons returns the calls of crons, as generated: runs that start by a schedule.
func (c *Client) Crons() graphdv1.CronServiceClient {
	return graphdv1.NewCronServiceClient(c.conn)
}

// Items returns the calls of the store, as generated: values that outlive threads, under namespaces
// and keys. A put that failed may be made again, for it says how the item is to be.
func (c *Client) Items() graphdv1.ItemServiceClient {
	return graphdv1.NewItemServiceClient(c.conn)
}
