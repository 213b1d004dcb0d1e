package main

import (
	"math"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/zap"
)

// limitMemory has Go collect garbage before the container's limit is reached:
// at 90 % of it, or where GOMEMLIMIT says.
func limitMemory(log *zap.Logger) {
	limit, err := memlimit.Set()
	switch {
	case err != nil:
		log.Debug("the memory limit of the container is not known; GOMEMLIMIT sets one", zap.Error(err))
	case limit < math.MaxInt64:
		log.Info("memory limit", zap.Int64("bytes", limit))
	}
}
