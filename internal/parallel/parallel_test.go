// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package parallel

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

func TestEachNumberIsDoneOnce(t *testing.T) {
	for _, n := range []int{0, 1, 15, 32, 1000} {
		done := make([]atomic.Int32, n)
		Each(n, 16, func(i int) { done[i].Add(1) })
		for i := range done {
			if got := done[i].Load(); got != 1 {
				t.Errorf("%d of %d was done %d times", i, n, got)
			}
		}
	}
}

func TestAPanicIsOneOfTheCaller(t *testing.T) {
	for _, n := range []int{5, 1000} {
		func() {
			defer func() {
				if p := fmt.Sprint(recover()); !strings.Contains(p, "number 3") {
					t.Errorf("of %d: the panic says %q", n, p)
				}
			}()
			Each(n, 16, func(i int) {
				if i == 3 {
					panic(errors.New("number 3"))
				}
			})
		}()
	}
}
