package cli

import (
	"github.com/graphd-dev/graphd/internal/cli/client"
	"github.com/graphd-dev/graphd/internal/cli/output"
	"github.com/graphd-dev/graphd/internal/cli/shell"
	"github.com/graphd-dev/graphd/internal/cli/stream"
)

// Session is one call of a command: a server, and the input and output of its
// caller.
type Session struct {
	*client.Client
	output.Output

	Invocation shell.Invocation
}

func (s *Session) newViewer() *stream.Viewer {
	return &stream.Viewer{Client: s.Client, Output: s.Output, Invocation: s.Invocation}
}
