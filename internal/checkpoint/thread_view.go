package checkpoint

import "context"

// ThreadView is a consistent snapshot of the records that are usually needed to
// continue a thread. A nil field was not read.
type ThreadView struct {
	Head       Head
	Run        *Run        // Head.Run
	Checkpoint *Checkpoint // Head.Checkpoint
	Pending    *Pending    // the progress after it
	// Interrupts are all interrupts of the thread, by Created and ID.
	Interrupts *[]Interrupt
	Requests   map[string]*Request // those that were asked for; nil = not used
}

// ThreadViewer is a store that reads a ThreadView at less cost than each of its
// parts.
type ThreadViewer interface {
	// ViewThread returns ErrThreadNotFound when there is no such thread,
	// and the error of Head when the head can't be read. Other records that
	// can't be read or are large are left out. Request, when set, is a
	// request id to look for.
	ViewThread(ctx context.Context, thread, request string) (*ThreadView, error)
}
