package script

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/graphd-dev/graphd/internal/checkpoint"
)

// ToContractError converts an error of the client to an error of the store's contract. It
// returns an error of the contract unchanged.
func ToContractError(ctx context.Context, err error) error {
	for _, known := range []error{
		checkpoint.ErrUnavailable, checkpoint.ErrCorrupt, checkpoint.ErrConflict, checkpoint.ErrInvalid,
		checkpoint.ErrGraphExists, checkpoint.ErrGraphNotFound, checkpoint.ErrTrimmed, checkpoint.ErrThreadNotFound, checkpoint.ErrRunNotFound,
		checkpoint.ErrVersionsChanged, checkpoint.ErrCheckpointNotFound, checkpoint.ErrInterruptNotFound, checkpoint.ErrRequestNotFound,
	} {
		if errors.Is(err, known) {
			return err
		}
	}
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "WRONGTYPE"):
		return fmt.Errorf("%w: a key holds another type: redis: %w", checkpoint.ErrCorrupt, err)
	case strings.Contains(err.Error(), "in input"): // the error of MessagePack in a script
		return fmt.Errorf("%w: redis: %w", checkpoint.ErrCorrupt, err)
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		return fmt.Errorf("%w: %w: redis: %w", checkpoint.ErrUnavailable, ctx.Err(), err)
	}
	return fmt.Errorf("%w: redis: %w", checkpoint.ErrUnavailable, err)
}

// isTransient reports whether the same call may well succeed a moment later. Of a
// call that changes something it is then unknown whether it did.
func isTransient(err error) bool {
	if answer, ok := errors.AsType[goredis.Error](err); ok {
		for _, word := range []string{"LOADING", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "BUSY"} {
			if strings.HasPrefix(answer.Error(), word) {
				return true
			}
		}
		return false
	}
	_, broken := errors.AsType[net.Error](err)
	return broken || errors.Is(err, net.ErrClosed) || strings.HasSuffix(err.Error(), "EOF")
}

// IsPermissionDenied reports that Redis denies the command: a retry would not
// help.
func IsPermissionDenied(err error) bool { return goredis.HasErrorPrefix(err, "NOPERM") }

// IsOutOfMemory reports whether Redis refuses to write because its memory is full.
func IsOutOfMemory(err error) bool { return goredis.HasErrorPrefix(err, "OOM") }
