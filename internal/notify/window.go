package notify

import (
	"slices"
	"sync"
	"time"
)

// MaxInFlight bounds the questions of an endpoint whose events are being sent.
const MaxInFlight = 64

// delivery is the events of one change of a question that are being sent.
type delivery struct {
	place    Place // once it and all before it are done
	question questionID
	events   []Event
	before   *delivery     // of the same question, nil = none is under way
	done     chan struct{} // closed when all events are done; nil = there was nothing to send
	isDone   bool
}

// window holds the deliveries under way in the order of their changes. The place of the endpoint
// moves to a change when all deliveries up to it are done.
type window struct {
	room chan struct{} // one value for each delivery under way

	mu         sync.Mutex
	place      Place
	deliveries []*delivery // the first is under way
}

func newWindow(p Place) *window {
	return &window{place: p, room: make(chan struct{}, MaxInFlight)}
}

// addDelivery adds a delivery after all others. It takes room before when the delivery has events.
func (w *window) addDelivery(d *delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range slices.Backward(w.deliveries) {
		if len(d.events) > 0 && !other.isDone && other.question == d.question {
			d.before = other
			break
		}
	}
	d.isDone = len(d.events) == 0
	w.deliveries = append(w.deliveries, d)
	w.movePlace()
}

// finishDelivery notes that a delivery is done.
func (w *window) finishDelivery(d *delivery) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d.isDone = true
	close(d.done)
	<-w.room
	w.movePlace()
}

// movePlace moves the place, and joins deliveries that are done. The mutex is held.
func (w *window) movePlace() {
	kept := w.deliveries[:0]
	for _, d := range w.deliveries {
		switch last := len(kept) - 1; {
		case d.isDone && last < 0:
			w.place = d.place
		case d.isDone && kept[last].isDone:
			kept[last] = d
		default:
			kept = append(kept, d)
		}
	}
	clear(w.deliveries[len(kept):])
	w.deliveries = kept
}

// currentPlace returns the place of the endpoint.
func (w *window) currentPlace() Place {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.place
}

// oldestUnsent returns the time of the oldest entry that is not sent, zero = there is none.
func (w *window) oldestUnsent() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.deliveries) == 0 {
		return time.Time{}
	}
	return w.deliveries[0].events[0].Entry.Time
}
