// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// minFlip bounds how often the readiness of a Pod flips: each time costs a write.
const minFlip = 100 * time.Millisecond

// parseFlip reads the value of FlipEvery. The random part is at most as long as the other,
// so that flips stay in their order.
func parseFlip(value string) (span, error) {
	s, err := parseSpan(value, false)
	if err != nil {
		return span{}, err
	}
	if s.least < minFlip || s.jitter > s.least {
		return span{}, fmt.Errorf("%q: at least %s, and a random part that is not longer than the other", value, minFlip)
	}
	return s, nil
}

// flipped reports whether a container that could be ready since then is not, because its
// readiness has flipped an odd number of times. Flip n is at n times the period and up to
// the random part later, so that the state follows from the time alone.
func (p *pass) flipped(s *corev1.ContainerStatus, since time.Time) bool {
	every := p.does.flip
	if !every.said {
		return false
	}
	flip := func(n int64) time.Time {
		return since.Add(time.Duration(n-1)*every.least + every.of(p.pod.UID, "flip/"+s.Name, int32(n)))
	}
	n := int64(p.now.Sub(since) / every.least)
	if n > 0 && p.now.Before(flip(n)) {
		n--
	}
	p.due(flip(n + 1))
	return n%2 == 1
}
