package flow

import "time"

// Settings of connections with clients and with endpoints: the bytes that gRPC
// takes before they are read, and the pings that find out whether the other side is
// still there.
const (
	ConnectionWindowSize = 1 << 20
	PingInterval         = 60 * time.Second
	PingTimeout          = 20 * time.Second
)
