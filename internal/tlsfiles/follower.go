package tlsfiles

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// follower has a configuration that follows its files. Its methods may be called at the
// same time.
type follower struct {
	files []file // path "" = not given
	parse func(texts [][]byte) (*tls.Config, error)
	log   *zap.Logger
	now   func() time.Time

	config   atomic.Pointer[tls.Config]
	checking sync.Mutex // guards the fields below
	checked  time.Time
	digest   [sha256.Size]byte // of the texts, or of the error, that were read last
}

// checkInterval is the shortest time between two looks at the files.
const checkInterval = time.Second

// openFiles reads the files for the first time. parse makes a configuration of their
// texts, in the order of the files. The error is a *FileError.
func (f *follower) openFiles(parse func(texts [][]byte) (*tls.Config, error)) error {
	f.parse, f.checked = parse, f.now()
	texts, err := readTexts(f.files)
	if err != nil {
		return err
	}
	config, err := f.parse(texts)
	if err != nil {
		return err
	}
	f.digest = digestTexts(texts)
	f.config.Store(config)
	return nil
}

// currentConfig returns the configuration of the newest files that could be used. One
// handshake at a time looks at the files; those beside it don't wait for the disk.
func (f *follower) currentConfig() *tls.Config {
	if f.checking.TryLock() {
		if now := f.now(); now.Sub(f.checked) >= checkInterval {
			f.checked = now
			f.reloadFiles()
		}
		f.checking.Unlock()
	}
	return f.config.Load()
}

// reloadFiles takes up files that have changed. It logs each state of the files once.
func (f *follower) reloadFiles() {
	texts, err := readTexts(f.files)
	digest := digestTexts(texts)
	if err != nil {
		digest = sha256.Sum256([]byte(err.Error()))
	}
	if digest == f.digest {
		return
	}
	f.digest = digest
	var config *tls.Config
	if err == nil {
		config, err = f.parse(texts)
	}
	if err != nil {
		f.log.Error("the files of TLS have changed and can't be used; what was read before stays in use", zap.Error(err))
		return
	}
	f.config.Store(config)
	f.log.Info("the files of TLS have changed; new connections use them", zap.String("file", f.firstPath()))
}

func (f *follower) firstPath() string {
	for _, one := range f.files {
		if one.path != "" {
			return one.path
		}
	}
	return ""
}

// warnOfValidity logs that a certificate is not valid at present.
func (f *follower) warnOfValidity(in file, c *x509.Certificate) {
	switch now := f.now(); {
	case now.After(c.NotAfter):
		f.log.Warn("a certificate has expired", zap.String("file", in.path), zap.Time("expires", c.NotAfter))
	case now.Before(c.NotBefore):
		f.log.Warn("a certificate is not valid yet", zap.String("file", in.path), zap.Time("begins", c.NotBefore))
	}
}

// warnOfReaders logs that others may read a key.
func (f *follower) warnOfReaders(key file) {
	if info, err := os.Stat(key.path); err == nil && info.Mode().Perm()&0o007 != 0 {
		f.log.Warn("others may read the key of TLS: give the file mode 0400", zap.String("file", key.path), zap.Stringer("mode", info.Mode().Perm()))
	}
}

// readTexts reads files; a file that is not given has no text. The error is a
// *FileError.
func readTexts(files []file) ([][]byte, error) {
	texts := make([][]byte, len(files))
	for i, one := range files {
		if one.path == "" {
			continue
		}
		text, err := one.readText()
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	return texts, nil
}

// digestTexts returns a digest, which is kept in place of a key.
func digestTexts(texts [][]byte) [sha256.Size]byte {
	var all []byte
	for _, text := range texts {
		one := sha256.Sum256(text)
		all = append(all, one[:]...)
	}
	return sha256.Sum256(all)
}
