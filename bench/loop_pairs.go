// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"slices"
)

// pairs is how many bursts of each of two loops a turn compares.
const pairs = 50

// pairedBurst is the most changes of one of these bursts. Short bursts follow each other fast, so both loops see the
// same speed of the machine.
const pairedBurst = 4000

// measureLoopPairs measures the loop with a record of its runs and the loop without one in the same process, by turns.
// Two processes differ by more than a record costs: in five turns of each, CPU by 7 %, and by 40 % in the worst of them.
// Only one of the two loops has work at a time, so the CPU time of the process is that of this loop, and of the
// collector, for which neither allocates more than the other.
func measureLoopPairs(ctx context.Context, s *sideSpec) (_ readings, err error) {
	sides := []string{setpointSide, unrecordedSide}
	loops := map[string]*idleLoop{}
	for i, side := range sides {
		one := *s
		one.Side, one.Server = side, []string{s.Server, s.Beside}[i]
		l, startErr := startIdleLoop(ctx, &one)
		if startErr != nil {
			return nil, startErr
		}
		defer func() { err = errors.Join(err, l.stop()) }()
		loops[side] = l
	}
	found := readings{}
	few := *s
	few.Events = min(s.Events, pairedBurst)
	for _, name := range []string{"", "-reading"} {
		rates, cpus := map[string][]float64{}, map[string][]float64{}
		for range pairs {
			for _, side := range sides {
				loops[side].reads.Store(name != "")
				lap, err := loops[side].burst(ctx, &few, "burst"+name)
				if err != nil {
					return nil, err
				}
				rates[side] = append(rates[side], float64(few.Events)/lap.wall)
				cpus[side] = append(cpus[side], lap.cpu/float64(few.Events)*1e6)
			}
			slices.Reverse(sides) // neither is always first
		}
		for _, side := range sides {
			found["rate"+name+" "+side], found["cpu"+name+" "+side] = median(rates[side]), median(cpus[side])
		}
	}
	return found, nil
}
