// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package traces

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// identifiers computes the IDs of spans from the numbers of runs.
type identifiers struct {
	seed  [16]byte // so that two processes have different IDs
	bound uint64   // traces whose ID is below are exported
}

// identifier is the ID of a span and that of its trace.
type identifier struct {
	trace [16]byte
	span  [8]byte
}

// newIdentifiers returns identifiers for a share of the runs, between 0 and 1.
func newIdentifiers(share float64) identifiers {
	i := identifiers{bound: uint64(share * (1 << 63))}
	_, _ = rand.Read(i.seed[:]) // it never fails
	return i
}

// of returns the identifier of the run of a number.
func (i *identifiers) of(number uint64) (id identifier) {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64(i.seed[:], number))
	copy(id.trace[:], sum[:])
	copy(id.span[:], sum[len(id.trace):])
	return id
}

// sampled reports whether a trace is exported. The decision depends on its ID alone.
// Source: go.opentelemetry.io/otel/sdk/trace, TraceIDRatioBased.
func (i *identifiers) sampled(id identifier) bool {
	return binary.BigEndian.Uint64(id.trace[8:])>>1 < i.bound
}
