// Package setup connects to a server, and finds, makes, checks, repairs or migrates the
// store on it. It knows which store that is: each partition bears its mark.
package setup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint/redis/layout"
	"github.com/graphd-dev/graphd/internal/checkpoint/redis/script"
	"github.com/graphd-dev/graphd/internal/checkpoint/seal"
)

// Database is a Redis database with the store on it.
type Database struct {
	Client  goredis.UniversalClient
	Scripts *script.Set
	Runner  *script.Runner
	Keys    layout.Keys
	Box     *seal.Box
	// Epoch identifies the store, and Mark is the mark of each partition.
	Epoch, Mark string
	// Warnings are sentences for the operator.
	Warnings []string

	config *storeConfig

	checkMu         sync.Mutex       // guards the fields below
	wrongPartitions map[int]struct{} // partitions that are of another store
	nextPartition   int              // partition to look at
}

// Open connects to the server of opts.URL, checks that threads are safe on
// it and makes the store when there is none. It returns an *Error when the store can't be
// used, or an error that wraps checkpoint.ErrUnavailable.
func Open(ctx context.Context, opts Options) (*Database, error) {
	return openWith(ctx, opts, func(d *Database) error {
		if err := d.joinOrCreateStore(ctx); err != nil {
			return err
		}
		return d.checkEncryptionKeys(ctx)
	})
}

// OpenForReading is Open for a store that is there, and writes nothing. It fails with
// ProblemMissing where there is none.
func OpenForReading(ctx context.Context, opts Options) (*Database, error) {
	return openWith(ctx, opts, func(d *Database) error {
		if err := d.findStore(ctx); err != nil {
			return err
		}
		_, err := d.verifyEncryptionKeys(ctx)
		return err
	})
}

// openWith connects to the server of opts.URL; find says which store it is.
func openWith(ctx context.Context, opts Options, find func(*Database) error) (*Database, error) {
	w, err := parseURL(opts)
	if err != nil {
		return nil, err
	}
	box, err := seal.New(opts.Seal)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	d, err := connectDatabase(ctx, w)
	if err != nil {
		return nil, err
	}
	d.Box = box
	if err := find(d); err != nil {
		return nil, errors.Join(d.WrapError(ctx, err), d.CloseClient())
	}
	return d, nil
}

// connectDatabase connects to a server without opening the store on it.
func connectDatabase(ctx context.Context, w *storeConfig) (*Database, error) {
	scripts, err := script.Load()
	if err != nil {
		return nil, err
	}
	d := &Database{
		Scripts: scripts, config: w, wrongPartitions: map[int]struct{}{},
	}
	if err := d.connectServer(ctx); err != nil {
		return nil, errors.Join(err, d.CloseClient())
	}
	return d, nil
}

// CloseClient closes the connections to the server, and returns the error of the client.
func (d *Database) CloseClient() error {
	if err := d.Client.Close(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return nil
}

// Prefix returns the beginning of all keys.
func (d *Database) Prefix() string { return d.config.prefix }

// WrapError converts an error of the client to an *Error or to an error that wraps
// checkpoint.ErrUnavailable.
func (d *Database) WrapError(ctx context.Context, err error) error {
	return d.config.wrapOpenError(ctx, err)
}

// NewRandomID makes a unique name: 32 hexadecimal digits.
func NewRandomID() string { return strings.ReplaceAll(uuid.NewString(), "-", "") }
