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

// space is what the writer knows of the space for changes. SQLite needs space even
// to delete, so a reserve file holds some back; it is given up for changes that
// free space, and made again afterwards.
type space struct {
	reservePath string // of the reserve
	reserveSize int64
	logBytes    int       // since the log was last kept short
	checkedAt   time.Time // when it was last looked whether there is space again
	largest     int64     // file that SQLite was told it may make, 0 = not told
}

// spaceRetryInterval is how long a full store waits before it checks for space again.
const spaceRetryInterval = time.Second

// ensureReserve makes the reserve file, or makes it whole. It holds no data.
func (s *space) ensureReserve() error {
	if s.reserveSize <= 0 {
		return nil
	}
	f, err := os.OpenFile(s.reservePath, os.O_RDWR|os.O_CREATE, privateMode)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if size := s.maxReserve(); err == nil && info.Size() < size {
		err = allocateBytes(f, size)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		s.removeReserve()
	}
	return err
}

// maxReserve is how large the reserve may be.
func (s *space) maxReserve() int64 { return min(s.reserveSize, fileLimit()) }

// removeReserve gives the reserve up.
func (s *space) removeReserve() { _ = os.Remove(s.reservePath) }

// writeZeros writes n bytes, for file systems that can't allocate.
func writeZeros(f *os.File, n int64) error {
	block := make([]byte, 64<<10)
	for at := int64(0); at < n; at += int64(len(block)) {
		if _, err := f.WriteAt(block[:min(int64(len(block)), n-at)], at); err != nil {
			return err
		}
	}
	return nil
}

// lacksSpace reports whether SQLite failed for lack of space. Some calls only say
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
	left := diskFree(w.store.file.realPath)
	if limit := fileLimit(); limit < math.MaxInt64 {
		if log, err := os.Stat(w.store.file.realPath + "-wal"); err == nil {
			limit = max(0, limit-log.Size())
		}
		left = min(left, limit)
	}
	return left
}

// refused reports whether the disk takes no more of this account, as when a quota
// is used up, which the count of free bytes does not show.
func (s *space) refused() bool {
	f, err := os.CreateTemp(filepath.Dir(s.reservePath), filepath.Base(s.reservePath)+"-*")
	if err != nil {
		return noRoom(err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	return noRoom(errors.Join(writeZeros(f, little), f.Sync(), f.Close()))
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
		return toContractError(err)
	}
	most := min(limit/size, mostPages)
	if err := w.conn.QueryRowContext(w.life, fmt.Sprint("PRAGMA max_page_count = ", most)).Scan(&pages); err != nil {
		return toContractError(err)
	}
	w.space.largest = limit
	return nil
}

// mostPages is what SQLite allows by itself.
const mostPages = 1<<32 - 2

// lacksPages reports whether SQLite had no space for what it wanted to write: then
// it has not committed.
func lacksPages(err error) bool {
	var se *sqlite.Error
	return errors.As(err, &se) && se.Code()&0xff == sqlite3.SQLITE_FULL
}

// noSpaceError is what a change is refused with while there is no space.
func (w *writer) noSpaceError(cause error) error {
	full := fmt.Sprintf("the disk of %s is full: make room on it, or delete threads", w.store.file.realPath)
	if limit := fileLimit(); limit < math.MaxInt64 {
		full = fmt.Sprintf("%s is full: raise `ulimit -f`, by which no file may have more than %d bytes, "+
			"make room on the disk, or delete threads", w.store.file.realPath, limit)
	}
	return fmt.Errorf("%w: %s; %d bytes must be free: %w", checkpoint.ErrStoreFull, full, w.requiredSpace(), cause)
}

var errNoSpace = errors.New("changes wait until there is room again")

// requiredSpace is how much space there must be, beside the reserve, for the log
// and as much again for the database: less is called full.
func (w *writer) requiredSpace() int64 { return max(w.space.maxReserve()/4, 256<<10) }

// refuseWhileFull answers the jobs that need space while there is none, and returns
// the others.
func (w *writer) refuseWhileFull(batch []*job) []*job {
	if !w.isFull.Load() || w.checkSpace() {
		return batch
	}
	var left []*job
	for _, j := range batch {
		if j.freesSpace {
			left = append(left, j)
			continue
		}
		j.done <- w.noSpaceError(errNoSpace)
	}
	return left
}

// checkSpace finds out, now and then, whether there is space again.
func (w *writer) checkSpace() bool {
	if !w.isFull.Load() {
		return true
	}
	if now := time.Now(); now.Sub(w.space.checkedAt) >= spaceRetryInterval {
		w.space.checkedAt = now
		w.restoreReserve()
	}
	return !w.isFull.Load()
}

// restoreReserve makes the reserve whole, and takes the store for full no more when
// there is space beside it.
func (w *writer) restoreReserve() {
	if w.space.ensureReserve() != nil || w.limitPages() != nil {
		return
	}
	if available, err := w.availableSpace(); err == nil && available >= w.requiredSpace() {
		w.isFull.Store(false)
	}
}

// availableSpace is how much changes may add: to the log, which needs the disk, and to the
// database, which has free pages of its own and what the log leaves of the disk.
func (w *writer) availableSpace() (int64, error) {
	var size, pages, most, free int64
	for pragma, into := range map[string]*int64{
		"page_size": &size, "page_count": &pages, "max_page_count": &most, "freelist_count": &free,
	} {
		if err := w.conn.QueryRowContext(w.life, "PRAGMA "+pragma).Scan(into); err != nil {
			return 0, toContractError(err)
		}
	}
	disk := w.left()
	grow := min(most-pages, max(0, disk-w.requiredSpace())/size)
	return min(disk, (free+grow)*size), nil
}

// retryWithReserve answers a job that failed for lack of space. The log may hold
// space that it does not need; without more only a job that frees some has another
// try, on what the reserve held back.
func (w *writer) retryWithReserve(j *job, cause error) {
	w.space.removeReserve() // to move the log into the database takes space, too
	w.truncateLog()
	if j.freesSpace || w.space.ensureReserve() == nil {
		results, err := w.runTransaction([]*job{j})
		if err == nil {
			w.truncateLog()
			w.checkSpace()
			j.done <- results[0]
			return
		}
		cause = err
	}
	if w.lacksSpace(cause) {
		w.isFull.Store(true)
		cause = w.noSpaceError(cause)
		w.truncateLog() // of the second try
	}
	w.restoreReserve()
	j.done <- cause
}

const (
	// scarceSpace is how little space makes the writer keep its log short,
	// after each truncateLogEvery bytes: what stands in the log has no space in
	// the database yet.
	scarceSpace      = 64 << 20
	truncateLogEvery = 256 << 10
	// scarceSpaceToOpen is how little space on the disk may be too little for
	// the files that SQLite makes when it opens a database.
	scarceSpaceToOpen = 256 << 10
)

// limitLog keeps the log short when the disk is nearly full.
func (w *writer) limitLog(batch []*job) {
	for _, j := range batch {
		w.space.logBytes += j.cost
	}
	if w.space.logBytes < truncateLogEvery {
		return
	}
	w.space.logBytes = 0
	if w.left() >= scarceSpace {
		return
	}
	w.truncateLog()
	if available, err := w.availableSpace(); err == nil && available < w.requiredSpace() {
		w.isFull.Store(true)
	}
}

// truncateLog moves the log into the database and cuts it off, which gives its
// space back. It may not be possible now: then it will be another time.
func (w *writer) truncateLog() {
	var busy, log, moved int64
	_ = w.conn.QueryRowContext(w.life, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
}

// CheckWritable says whether the store takes changes; it implements
// checkpoint.WriteChecker. A store that was full checks for space.
func (s *Store) CheckWritable(ctx context.Context) error {
	if err := s.file.checkReplaced(); err != nil {
		return err
	}
	if !s.writer.isFull.Load() {
		return nil
	}
	return s.writer.runChange(ctx, func(*writer) error { return nil })
}
