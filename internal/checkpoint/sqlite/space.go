package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
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
	largest int64     // file that SQLite was told it may make, 0 = not told
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
	if size := s.most(); err == nil && info.Size() < size {
		err = allocate(f, size)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		s.release()
	}
	return err
}

// most is how large the reserve may be.
func (s *space) most() int64 { return min(s.size, fileLimit()) }

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
// that they failed: then the limits are looked at, and the disk is asked.
func (w *writer) lacksSpace(err error) bool {
	var se *sqlite.Error
	if !errors.As(err, &se) {
		return false
	}
	return lacksPages(err) || se.Code()&0xff == sqlite3.SQLITE_IOERR && (w.left() < little || w.space.refused())
}

// little is less than SQLite needs at once.
const little = 64 << 10

// left is how much the log may grow: as the disk and the largest file that this
// process may write allow.
func (w *writer) left() int64 {
	left := diskFree(w.store.file.real)
	if limit := fileLimit(); limit < math.MaxInt64 {
		if log, err := os.Stat(w.store.file.real + "-wal"); err == nil {
			limit = max(0, limit-log.Size())
		}
		left = min(left, limit)
	}
	return left
}

// refused reports whether the disk takes no more of this account, as when a quota
// is used up, which the count of free bytes does not tell of.
func (s *space) refused() bool {
	f, err := os.CreateTemp(filepath.Dir(s.path), filepath.Base(s.path)+"-*")
	if err != nil {
		return noRoom(err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	return noRoom(errors.Join(fill(f, little), f.Sync(), f.Close()))
}

// limitPages has SQLite refuse what would make the database larger than a file may
// be: then the change is refused, and not what moves the log into the database.
func (w *writer) limitPages() error {
	limit := fileLimit()
	if limit == w.space.largest || limit == math.MaxInt64 && w.space.largest == 0 {
		return nil
	}
	var size, pages int64
	if err := w.conn.QueryRowContext(w.life, "PRAGMA page_size").Scan(&size); err != nil {
		return failed(err)
	}
	most := min(limit/size, mostPages)
	if err := w.conn.QueryRowContext(w.life, fmt.Sprint("PRAGMA max_page_count = ", most)).Scan(&pages); err != nil {
		return failed(err)
	}
	w.space.largest = limit
	return nil
}

// mostPages is what SQLite allows by itself.
const mostPages = 1<<32 - 2

// lacksPages reports whether SQLite had no room for what it wanted to write: then
// it has not committed.
func lacksPages(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_FULL
}

// noSpace is what a change is refused with while there is no room.
func (w *writer) noSpace(cause error) error {
	full := fmt.Sprintf("the disk of %s is full: make room on it, or delete threads", w.store.file.real)
	if limit := fileLimit(); limit < math.MaxInt64 {
		full = fmt.Sprintf("%s is full: raise `ulimit -f`, by which no file may have more than %d bytes, "+
			"make room on the disk, or delete threads", w.store.file.real, limit)
	}
	return fmt.Errorf("%w: %s; %d bytes must be free: %w", checkpoint.ErrStoreFull, full, w.enough(), cause)
}

var errNoSpace = errors.New("changes wait until there is room again")

// enough is how much room there must be, beside the reserve, for the log and as
// much again for the database: less is called full.
func (w *writer) enough() int64 { return max(w.space.most()/4, 256<<10) }

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
	if w.space.reserve() != nil || w.limitPages() != nil {
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
	disk := w.left()
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
	// scarce is how little room makes the writer keep its log short,
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
	if w.left() >= scarce {
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
