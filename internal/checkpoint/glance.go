package checkpoint

import "context"

// Glance is what one look at a thread shows: all that it usually takes to go on
// with it, as it was at one moment. What is nil was not looked at.
type Glance struct {
	Head       Head
	Run        *Run        // Head.Run
	Checkpoint *Checkpoint // Head.Checkpoint
	Pending    *Pending    // the progress after it
	// Interrupts are all questions of the thread, by Created and ID.
	Interrupts *[]Interrupt
	Requests   map[string]*Request // those that were asked for; nil = not used
}

// Glancer is a store to which a look at a thread as a whole costs less than one
// at each of its parts.
type Glancer interface {
	// Glance returns ErrThreadNotFound when there is no such thread, and what
	// Head returns for one that can't be read. Of the rest, what can't be read
	// or is large is left out. Request, when set, is a request id to look for.
	Glance(ctx context.Context, thread, request string) (Glance, error)
}
