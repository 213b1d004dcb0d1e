package runtime

import (
	"context"
	"errors"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// RunWebhook is an address that is told when a run has stopped: it waits for people, or has ended.
type RunWebhook struct {
	Thread string // with the tenant
	Run    string
	ID     string // of the request that wants it; unique in the thread
	After  uint64 // event of the thread after which the stop counts
	URL    string
}

// RunStop is the stop of a run that a webhook is told of.
type RunStop struct {
	RunWebhook

	Stopped checkpoint.Run
	Attempt int // from 1
}

// RunStopSender tells an address of a stop.
type RunStopSender interface {
	// SendRunStop returns nil when the address has taken it, ErrWebhookRefused when it never will,
	// and another error when a later attempt may succeed. No error has the URL.
	SendRunStop(ctx context.Context, s *RunStop) error
	// CheckURL refuses an address to which nothing is sent. The error is an *Error
	// that names the field.
	CheckURL(field, url string) error
}

// ErrWebhookRefused is the error of a webhook that is not to be called again.
var ErrWebhookRefused = errors.New("the webhook is not to be called again")
