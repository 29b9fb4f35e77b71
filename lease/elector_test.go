// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lease_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/lease"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

var (
	leases = object.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true}
	key    = object.Key{Namespace: "kube-system", Name: "test"}
)

// process is one that may lead, with its own way to the server.
type process struct {
	*lease.Elector
	way *way
}

// way is a transport that can break.
type way struct {
	next   http.RoundTripper
	cut    atomic.Bool                        // nothing arrives, and nobody answers
	refuse func(r *http.Request) (status int) // 0: let through; nil: all
	lose   func(r *http.Request) bool         // the answer, after the server has done it
	sent   atomic.Int64
}

var errBroken = errors.New("the connection broke")

func (w *way) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.cut.Load() {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	w.sent.Add(1)
	if w.refuse != nil {
		if code := w.refuse(r); code != 0 {
			return &http.Response{
				StatusCode: code, Header: http.Header{}, Request: r,
				Body: io.NopCloser(strings.NewReader("not now")),
			}, nil
		}
	}
	response, err := w.next.RoundTrip(r)
	if err == nil && w.lose != nil && w.lose(r) {
		response.Body.Close()
		return nil, errBroken
	}
	return response, err
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") == "true" }

func candidate(t *testing.T, server *fakeapi.Resource, identity string) *process {
	t.Helper()
	w := &way{next: server}
	c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: w})
	if err != nil {
		t.Fatal(err)
	}
	e, err := lease.New(c, lease.Config{
		Key: key, Identity: identity, Timing: lease.DefaultTiming, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return &process{e, w}
}

func (p *process) lead(t *testing.T) *lease.Term {
	t.Helper()
	term, err := p.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = term.Release(context.Background(), "") })
	return term
}

// standby has a process stand by, and returns where its term appears.
func (p *process) standby(t *testing.T) <-chan *lease.Term {
	t.Helper()
	terms := make(chan *lease.Term, 1)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if term, err := p.Acquire(ctx); err == nil {
			terms <- term
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		select {
		case term := <-terms:
			_ = term.Release(context.Background(), "")
		default:
		}
	})
	synctest.Wait()
	return terms
}

func waits(t *testing.T, terms <-chan *lease.Term, why string) {
	t.Helper()
	synctest.Wait()
	select {
	case <-terms:
		t.Fatalf("the other one leads %s", why)
	default:
	}
}

// follows takes the term of the process that stood by.
func follows(t *testing.T, terms <-chan *lease.Term) *lease.Term {
	t.Helper()
	select {
	case term := <-terms:
		t.Cleanup(func() { _ = term.Release(context.Background(), "") })
		if err := term.Certain(); err != nil {
			t.Errorf("a new term is not certain: %v", err)
		}
		return term
	case <-time.After(time.Minute):
		t.Fatal("nobody leads")
		return nil
	}
}

func record(t *testing.T, server *fakeapi.Resource) *coordinationv1.Lease {
	t.Helper()
	c, err := client.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	l, err := client.ForResource[*coordinationv1.Lease](c, leases).Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestAReleasedLeaseHasTheNextHolderAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(leases)
		first := candidate(t, server, "first").lead(t)
		next := candidate(t, server, "second").standby(t)
		time.Sleep(10 * time.Minute)
		waits(t, next, "beside a holder that renews")
		if err := first.Certain(); err != nil {
			t.Fatalf("after ten minutes of renewals: %v", err)
		}
		released := time.Now()
		if err := first.Release(t.Context(), "mind the gap"); err != nil {
			t.Fatal(err)
		}
		if err := first.Certain(); !errors.Is(err, lease.ErrReleased) {
			t.Errorf("after the release: %v", err)
		}
		second := follows(t, next)
		if second.Left() != "mind the gap" || first.Left() != "" {
			t.Errorf("the word that was left is %q", second.Left())
		}
		if took := time.Since(released); took != 0 { // in the bubble, waiting alone takes time
			t.Errorf("the next holder waited for %s, although it watches", took)
		}
		l := record(t, server)
		if *l.Spec.HolderIdentity != "second" || *l.Spec.LeaseTransitions != 1 || *l.Spec.LeaseDurationSeconds != 9 || len(l.Annotations) > 0 {
			t.Errorf("the record is %v", l)
		}
	})
}

func TestAHolderThatCannotReachTheServerStopsBeforeAnotherBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(leases)
		a := candidate(t, server, "a")
		term := a.lead(t)
		next := candidate(t, server, "b").standby(t)
		time.Sleep(time.Minute + 500*time.Millisecond) // somewhere between two renewals
		a.way.cut.Store(true)
		cut := time.Now()

		<-term.Context().Done()
		if err := context.Cause(term.Context()); !errors.Is(err, lease.ErrExpired) {
			t.Errorf("the term ended because of %v", err)
		}
		if term.Certain() == nil {
			t.Error("the lease is certain after the end of its term")
		}
		ended := time.Since(cut)
		waits(t, next, "in the moment in which the term ends")
		follows(t, next)
		taken := time.Since(cut)
		if margin := taken - ended; margin != lease.DefaultTiming.Duration-lease.DefaultTiming.RenewDeadline {
			t.Errorf("between the end of one term and the begin of the next are %s", margin)
		}
		if taken > 10*time.Second {
			t.Errorf("taken over after %s", taken)
		}
	})
}

func TestRenewalsThatAreAnsweredWith500EndTheTermInTimeAndNotBefore(t *testing.T) {
	for name, test := range map[string]struct {
		lasts time.Duration
		ends  bool
	}{
		"for three seconds": {3 * time.Second, false},
		"for ever":          {time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := fakeapi.New().Serve(leases)
				a := candidate(t, server, "a")
				began := time.Now()
				var leads atomic.Bool
				a.way.refuse = func(r *http.Request) int {
					if leads.Load() && time.Since(began) < test.lasts && !isWatch(r) {
						return http.StatusInternalServerError
					}
					return 0
				}
				term := a.lead(t)
				leads.Store(true)
				next := candidate(t, server, "b").standby(t)
				select {
				case <-term.Context().Done():
					if !test.ends {
						t.Fatalf("the term ended: %v", context.Cause(term.Context()))
					}
					if lasted := time.Since(began); lasted != lease.DefaultTiming.RenewDeadline {
						t.Errorf("the term lasted for %s", lasted)
					}
					waits(t, next, "in the moment in which the term ends")
					follows(t, next)
				case <-time.After(time.Minute):
					if test.ends {
						t.Fatal("the term goes on")
					}
					waits(t, next, "although the server came back in time")
				}
			})
		})
	}
}

func TestTwoProcessesWithOneIdentityDoNotLeadAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(leases)
		a := candidate(t, server, "same")
		term := a.lead(t)
		next := candidate(t, server, "same").standby(t)
		time.Sleep(10 * time.Minute)
		waits(t, next, "under the name of the holder")
		if err := term.Certain(); err != nil {
			t.Fatalf("the holder was disturbed by its namesake: %v", err)
		}
		a.way.cut.Store(true)
		<-term.Context().Done()
		waits(t, next, "too early")
		follows(t, next)
	})
}

// What a process that was stopped finds when it is continued: time has passed on both
// clocks, and no timer has fired yet.
func TestAProcessThatWasStoppedIsNoLongerCertainBeforeAnyTimerFires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := candidate(t, fakeapi.New().Serve(leases), "a")
		var mono, wall atomic.Int64
		lease.Shift(a.Elector, func() time.Duration { return time.Duration(mono.Load()) }, func() time.Duration { return time.Duration(wall.Load()) })
		term := a.lead(t)
		for _, test := range []struct {
			name       string
			mono, wall time.Duration
			certain    bool
		}{
			{"stopped for a moment", 5 * time.Second, 5 * time.Second, true},
			{"stopped until the deadline", 6 * time.Second, 6 * time.Second, false},
			{"asleep with the machine, which halts the monotonic clock", 0, time.Hour, false},
			{"somebody set the clock back", 0, -time.Hour, true},
			{"stopped while somebody set the clock back", time.Hour, -time.Hour, false},
		} {
			mono.Store(int64(test.mono))
			wall.Store(int64(test.wall))
			if err := term.Certain(); (err == nil) != test.certain {
				t.Errorf("%s: %v", test.name, err)
			}
		}
	})
}

func TestAWallClockThatJumpsNeitherEndsATermNorBeginsOne(t *testing.T) {
	for name, jump := range map[string]time.Duration{"forward": 24 * time.Hour, "back": -24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := fakeapi.New().Serve(leases)
				a, b := candidate(t, server, "a"), candidate(t, server, "b")
				var jumped atomic.Bool
				for _, p := range []*process{a, b} {
					lease.Shift(p.Elector, func() time.Duration { return 0 }, func() time.Duration {
						if jumped.Load() {
							return jump
						}
						return 0
					})
				}
				term := a.lead(t)
				next := b.standby(t)
				time.Sleep(time.Minute + time.Second/2) // between two renewals
				jumped.Store(true)
				if certain := term.Certain() == nil; certain != (jump < 0) {
					t.Errorf("right after the jump the holder is certain: %v", certain)
				}
				time.Sleep(time.Minute)
				if err := term.Certain(); err != nil {
					t.Errorf("a renewal later: %v", err)
				}
				waits(t, next, "because a clock was set")
			})
		})
	}
}

func TestALeaseDeletedUnderItsHolderIsMadeAnewAndTheTermGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(leases)
		term := candidate(t, server, "a").lead(t)
		next := candidate(t, server, "b").standby(t)
		time.Sleep(time.Minute + time.Second/2)
		before := record(t, server)
		remove(t, server)
		synctest.Wait() // no time passes: the watch tells
		after := record(t, server)
		if after.UID == before.UID || *after.Spec.HolderIdentity != "a" || !after.Spec.AcquireTime.Equal(before.Spec.AcquireTime) {
			t.Errorf("the lease is %v", after)
		}
		time.Sleep(10 * time.Minute)
		waits(t, next, "after the lease was deleted")
		if err := term.Certain(); err != nil {
			t.Error(err)
		}
	})
}

func TestWhoSawAHolderRespectsItsTimeAlthoughTheLeaseIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(leases)
		a := candidate(t, server, "a")
		term := a.lead(t)
		next := candidate(t, server, "b").standby(t)
		a.way.cut.Store(true) // so that its watch is the only one that works
		remove(t, server)
		<-term.Context().Done()
		waits(t, next, "while the holder was certain")
		follows(t, next)
	})
}

func remove(t *testing.T, server *fakeapi.Resource) {
	t.Helper()
	c, err := client.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	if err := client.ForResource[*coordinationv1.Lease](c, leases).Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, server *fakeapi.Resource, change map[string]any) {
	t.Helper()
	c, err := client.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	patch, err := client.MergePatch(change)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ForResource[*coordinationv1.Lease](c, leases).Patch(t.Context(), key, patch); err != nil {
		t.Fatal(err)
	}
}

func TestAHolderWhoseLeaseIsGivenToAnotherEndsItsTermAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(leases)
		term := candidate(t, server, "a").lead(t)
		time.Sleep(time.Minute + time.Second/2)
		edit(t, server, map[string]any{"spec": map[string]any{"holderIdentity": "kubectl"}})
		synctest.Wait()
		taken, ok := errors.AsType[*lease.TakenError](context.Cause(term.Context()))
		if !ok || taken.Holder() != "kubectl" || term.Certain() == nil {
			t.Errorf("the term is over because of %v", context.Cause(term.Context()))
		}
		if l := record(t, server); *l.Spec.HolderIdentity != "kubectl" {
			t.Errorf("it was taken back: %v", l.Spec)
		}
	})
}

func TestALabelOnTheLeaseDisturbsNobodyAndStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(leases)
		a := candidate(t, server, "a")
		term := a.lead(t)
		next := candidate(t, server, "b").standby(t)
		for range 10 {
			time.Sleep(time.Second)
			edit(t, server, map[string]any{"metadata": map[string]any{"labels": map[string]any{"at": time.Now().Format("15-04-05")}}})
			synctest.Wait()
			if err := term.Certain(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if record(t, server).Labels["at"] == "" {
			t.Error("the label was removed")
		}
		waits(t, next, "because of a label")
		// It is no sign of life either.
		a.way.cut.Store(true)
		cut := time.Now()
		for range 9 {
			time.Sleep(time.Second)
			edit(t, server, map[string]any{"metadata": map[string]any{"labels": map[string]any{"at": time.Now().Format("15-04-05")}}})
		}
		follows(t, next)
		if took := time.Since(cut); took > lease.DefaultTiming.Duration {
			t.Errorf("taken over after %s", took)
		}
	})
}

func TestARenewalWhoseAnswerIsLostCountsFromWhenItWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(leases)
		a := candidate(t, server, "a")
		var n atomic.Int64
		a.way.lose = func(r *http.Request) bool { return r.Method == http.MethodPut && n.Add(1)%2 == 1 }
		term := a.lead(t)
		next := candidate(t, server, "b").standby(t)
		time.Sleep(10 * time.Minute)
		if err := term.Certain(); err != nil || n.Load() < 100 {
			t.Errorf("after %d renewals: %v", n.Load(), err)
		}
		waits(t, next, "because answers were lost")
	})
}

func TestALeaseThatWasTakenWithoutAnAnswerIsRecognised(t *testing.T) {
	for _, method := range []string{http.MethodPost, http.MethodPut} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := fakeapi.New().Serve(leases)
				if method == http.MethodPut {
					if err := candidate(t, server, "before").lead(t).Release(t.Context(), ""); err != nil {
						t.Fatal(err)
					}
				}
				a := candidate(t, server, "a")
				lost := false
				a.way.lose = func(r *http.Request) bool {
					if r.Method == method && !lost {
						lost = true
						return true
					}
					return false
				}
				began := time.Now()
				a.lead(t)
				if took := time.Since(began); !lost || took > lease.DefaultTiming.RetryPeriod {
					t.Errorf("it leads after %s", took)
				}
			})
		})
	}
}

func TestWhoMayNotWatchAsksAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(leases)
		first := candidate(t, server, "first").lead(t)
		b := candidate(t, server, "b")
		b.way.refuse = func(r *http.Request) int {
			if isWatch(r) {
				return http.StatusForbidden
			}
			return 0
		}
		next := b.standby(t)
		before := b.way.sent.Load()
		time.Sleep(time.Minute)
		if n := b.way.sent.Load() - before; n > 65 {
			t.Errorf("%d requests in a minute", n)
		}
		if err := first.Release(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		released := time.Now()
		follows(t, next)
		if took := time.Since(released); took > lease.DefaultTiming.RetryPeriod {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAReleaseThatTheServerDoesNotHearEndsTheTermAndSaysWhatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(leases)
		a := candidate(t, server, "a")
		term := a.lead(t)
		a.way.cut.Store(true)
		began := time.Now()
		err := term.Release(t.Context(), "")
		if err == nil || !strings.Contains(err.Error(), "until it expires") || term.Certain() == nil {
			t.Errorf("the release: %v", err)
		}
		if took := time.Since(began); took > lease.DefaultTiming.RenewDeadline {
			t.Errorf("it took %s", took)
		}
	})
}

func TestAHolderOfAnotherKindIsRespectedForItsOwnDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fakeapi.New().Serve(leases)
		holder, seconds, now := "kube-controller-manager", int32(15), metav1.NowMicro()
		if err := server.Add(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now, AcquireTime: &now},
		}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		candidate(t, server, "a").lead(t)
		if took := time.Since(began); took != 15*time.Second {
			t.Errorf("taken after %s", took)
		}
	})
}

func TestTimingsUnderWhichTwoCouldLeadAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		timing lease.Timing
		says   string
	}{
		"the default":                {lease.DefaultTiming, ""},
		"that of upstream":           {lease.Timing{Duration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}, ""},
		"a deadline after the end":   {lease.Timing{Duration: 10 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second}, "renew deadline 10s: want less than the lease duration"},
		"parts of seconds":           {lease.Timing{Duration: 1500 * time.Millisecond, RenewDeadline: time.Second, RetryPeriod: time.Second / 4}, "want whole seconds"},
		"a retry after the deadline": {lease.Timing{Duration: 10 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 2 * time.Second}, "at least two retry periods"},
		"nothing":                    {lease.Timing{}, "lease duration 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.timing.Validate()
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("it says %v", err)
			}
		})
	}
}
