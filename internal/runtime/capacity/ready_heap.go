package capacity

// notReady is the place of a queue whose owner had no free slot when it was looked at last.
const notReady = -1

// readyQueue is a queue in a readyHeap.
type readyQueue interface {
	firstNumber() uint64 // of its threads that may be taken
	setPlace(at int)
}

// readyHeap is a heap of the queues whose threads may be taken, by the number of their
// first thread.
type readyHeap[Q readyQueue] []Q

// Len is that of heap.Interface.
func (r readyHeap[Q]) Len() int { return len(r) }

// Less is that of heap.Interface.
func (r readyHeap[Q]) Less(i, j int) bool { return r[i].firstNumber() < r[j].firstNumber() }

// Swap is that of heap.Interface.
func (r readyHeap[Q]) Swap(i, j int) {
	r[i], r[j] = r[j], r[i]
	r[i].setPlace(i)
	r[j].setPlace(j)
}

// Push is that of heap.Interface.
func (r *readyHeap[Q]) Push(x any) {
	q := x.(Q) //nolint:forcetypeassert,errcheck // only those are pushed
	q.setPlace(len(*r))
	*r = append(*r, q)
}

// Pop is that of heap.Interface.
func (r *readyHeap[Q]) Pop() any {
	var none Q
	last := len(*r) - 1
	q := (*r)[last]
	(*r)[last] = none
	*r = (*r)[:last]
	q.setPlace(notReady)
	return q
}

func (t *tenantQueue) firstNumber() uint64 { return t.ready[0].firstNumber() }

func (t *tenantQueue) setPlace(at int) { t.place = at }

func (u *userQueue) firstNumber() uint64 { return u.threads[0].number }

func (u *userQueue) setPlace(at int) { u.place = at }
