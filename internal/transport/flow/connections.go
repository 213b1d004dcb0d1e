package flow

import "time"

// How connections are kept, those of clients and those to endpoints: what gRPC takes of
// the other side before it is read, and when it asks whether that is still there.
const (
	ConnectionWindowSize = 1 << 20
	PingInterval         = 60 * time.Second
	PingTimeout          = 20 * time.Second
)
