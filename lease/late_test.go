// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// stall does what is asked, and does not answer.
type stall struct {
	next  http.RoundTripper
	stuck func(*http.Request) bool
}

func (s *stall) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(r)
	if err == nil && s.stuck(r) {
		_ = response.Body.Close()
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return response, err
}

// A server may stall while a lease is taken. The time until the answer is given up is a large part of that of a renewal.
func TestATermWhoseFirstAnswerWasTooLateIsRenewedInTime(t *testing.T) {
	for _, lost := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			server := fakeapi.New().Serve(leases)
			if err := candidate(t, server, "before").lead(t).Release(t.Context(), "a word"); err != nil {
				t.Fatal(err)
			}
			a := candidate(t, server, "a")
			left := lost
			a.way.next = &stall{next: server, stuck: func(r *http.Request) bool {
				if r.Method != http.MethodPut || left == 0 {
					return false
				}
				left--
				return true
			}}
			term := a.lead(t)
			if word := term.Left(); word != "a word" {
				t.Errorf("the word of the holder before is %q", word)
			}
			select {
			case <-term.Context().Done():
				t.Errorf("with %d answers too late, the term ended: %v", lost, context.Cause(term.Context()))
			case <-time.After(time.Minute):
			}
		})
	}
}
