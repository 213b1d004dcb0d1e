package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// space is what the writer knows of the room for changes. SQLite needs room
// even to delete, so a reserve file holds some back; it is given up for changes
// that free room, and made again afterwards.
type space struct {
	path    string // of the reserve
	size    int64
	written int       // since the log was last kept short
	tried   time.Time // when it was last looked whether there is room again
}

// tryAgain is how long a full store waits before it looks for room again.
const tryAgain = time.Second

// reserve makes the reserve file, or makes it whole. It holds no data.
func (s *space) reserve() error {
	if s.size <= 0 {
		return nil
	}
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, private)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() < s.size {
		err = allocate(f, s.size)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		s.release()
	}
	return err
}

// release gives the reserve up.
func (s *space) release() { _ = os.Remove(s.path) }

// fill writes n bytes, for file systems that can't allocate.
func fill(f *os.File, n int64) error {
	block := make([]byte, 64<<10)
	for at := int64(0); at < n; at += int64(len(block)) {
		if _, err := f.WriteAt(block[:min(int64(len(block)), n-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// lacksSpace reports whether SQLite failed for lack of room. Some calls only say
// that they failed: then the disk is asked.
func (w *writer) lacksSpace(err error) bool {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return false
	}
	return lacksPages(err) || se.Code()&0xff == sqlite3.SQLITE_IOERR && diskFree(w.store.file.real) < 64<<10
}

// lacksPages reports whether SQLite had no room for what it wanted to write: then
// it has not committed.
func lacksPages(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_FULL
}

// noSpace is what a change is refused with while there is no room.
func (w *writer) noSpace(cause error) error {
	return fmt.Errorf("%w: the disk of %s is full: make room on it, or delete threads; %d bytes must be free: %w",
		checkpoint.ErrStoreFull, w.store.file.real, w.enough(), cause)
}

var errNoSpace = errors.New("changes wait until there is room again")

// enough is how much room there must be, beside the reserve, for the log and as
// much again for the database: less is called full.
func (w *writer) enough() int64 { return max(w.space.size/4, 256<<10) }

// refuseWhileFull answers the jobs that need room while there is none, and
// returns the others.
func (w *writer) refuseWhileFull(batch []*job) []*job {
	if !w.full.Load() || w.look() {
		return batch
	}
	var left []*job
	for _, j := range batch {
		if j.frees {
			left = append(left, j)
			continue
		}
		j.done <- w.noSpace(errNoSpace)
	}
	return left
}

// look finds out, now and then, whether there is room again.
func (w *writer) look() bool {
	if !w.full.Load() {
		return true
	}
	if now := time.Now(); now.Sub(w.space.tried) >= tryAgain {
		w.space.tried = now
		w.settle()
	}
	return !w.full.Load()
}

// settle makes the reserve whole, and takes the store for full no more when
// there is room beside it.
func (w *writer) settle() {
	if w.space.reserve() != nil {
		return
	}
	if room, err := w.room(); err == nil && room >= w.enough() {
		w.full.Store(false)
	}
}

// room is how much changes may add: to the log, which needs the disk, and to the
// database, which has free pages of its own and what the log leaves of the disk.
func (w *writer) room() (int64, error) {
	var size, pages, most, free int64
	for pragma, into := range map[string]*int64{
		"page_size": &size, "page_count": &pages, "max_page_count": &most, "freelist_count": &free,
	} {
		if err := w.conn.QueryRowContext(w.life, "PRAGMA "+pragma).Scan(into); err != nil {
			return 0, failed(err)
		}
	}
	disk := diskFree(w.store.file.real)
	grow := min(most-pages, max(0, disk-w.enough())/size)
	return min(disk, (free+grow)*size), nil
}

// outOfSpace answers a job that failed for lack of room. The log may hold room
// that it does not need; without more only a job that frees some has another
// try, on what the reserve held back.
func (w *writer) outOfSpace(j *job, cause error) {
	w.space.release() // to move the log into the database takes room, too
	w.fold()
	if j.frees || w.space.reserve() == nil {
		results, err := w.transact([]*job{j})
		if err == nil {
			w.fold()
			w.look()
			j.done <- results[0]
			return
		}
		cause = err
	}
	if w.lacksSpace(cause) {
		w.full.Store(true)
		cause = w.noSpace(cause)
		w.fold() // of the second try
	}
	w.settle()
	j.done <- cause
}

const (
	// scarce is how little room on the disk makes the writer keep its log short,
	// after each foldEvery bytes: what stands in the log has no room in the
	// database yet.
	scarce    = 64 << 20
	foldEvery = 256 << 10
	// scarceToOpen is how little room on the disk may be too little for the files
	// that SQLite makes when it opens a database.
	scarceToOpen = 256 << 10
)

// thrift keeps the log short when the disk is nearly full.
func (w *writer) thrift(batch []*job) {
	for _, j := range batch {
		w.space.written += j.cost
	}
	if w.space.written < foldEvery {
		return
	}
	w.space.written = 0
	if diskFree(w.store.file.real) >= scarce {
		return
	}
	w.fold()
	if room, err := w.room(); err == nil && room < w.enough() {
		w.full.Store(true)
	}
}

// fold moves the log into the database and cuts it off, which gives its room
// back. It may not be possible now: then it will be another time.
func (w *writer) fold() {
	var busy, log, moved int64
	_ = w.conn.QueryRowContext(w.life, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
}

// Writable says whether the store takes changes; it implements
// checkpoint.Condition. A store that was full looks for room.
func (s *Store) Writable(ctx context.Context) error {
	if err := s.file.check(); err != nil {
		return err
	}
	if !s.write.full.Load() {
		return nil
	}
	return s.write.do(ctx, func(*writer) error { return nil })
}
