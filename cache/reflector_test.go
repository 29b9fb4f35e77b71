// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// Each case is a script of a server's answers, what must have been asked, and what
// the store must hold in the end.
func TestReflector(t *testing.T) {
	cases := []struct {
		name    string
		answers func() []any
		asked   string
		store   string
		version object.Version
	}{
		{
			name: "a watch list is the state once its bookmark has come, and the same watch goes on",
			answers: func() []any {
				return []any{watching(added(pod("a", "1")), added(pod("b", "2")), allSent("5"),
					modified(pod("a", "6")), deleted(pod("b", "7")), added(pod("c", "8")))}
			},
			asked: `watch list from ""`,
			store: "a@6 c@8", version: "8",
		},
		{
			name: "a server without watch list gets a list, of the newest state and not of any",
			answers: func() []any {
				return []any{errNoWatchList, fakeList{version: "5", objects: []object.Object{pod("a", "1")}}, watching(added(pod("b", "6")))}
			},
			asked: "watch list from \"\"\nlist from \"\"\nwatch from \"5\"",
			store: "a@1 b@6", version: "6",
		},
		{
			name: "a watch that ends is resumed where it ended",
			answers: func() []any {
				first := watching(allSent("5"), added(pod("a", "6")))
				close(first.events)
				return []any{first, watching(added(pod("b", "7")))}
			},
			asked: "watch list from \"\"\nwatch from \"5\"", // there may be more at 6
			store: "a@6 b@7", version: "7",
		},
		{
			name: "a watch that breaks is resumed where it broke, without a list",
			answers: func() []any {
				return []any{watching(allSent("5"), added(pod("a", "6")), failing(errNoConnection)), errNoConnection, watching(added(pod("b", "7")))}
			},
			asked: "watch list from \"\"\nwatch from \"5\"\nwatch from \"5\"",
			store: "a@6 b@7", version: "7",
		},
		{
			name: "a watch list that is compressed ends with the state, and a watch continues",
			answers: func() []any {
				return []any{compressing(added(pod("a", "4")), allSent("5"), added(pod("late", "6"))), watching(added(pod("b", "6")))}
			},
			asked: "watch list from \"\"\nwatch from \"5\"",
			store: "a@4 b@6", version: "6",
		},
		{
			name: "a watch that is compressed goes on",
			answers: func() []any {
				return []any{watching(allSent("5"), failing(errNoConnection)), compressing(added(pod("a", "6")), added(pod("b", "7")))}
			},
			asked: "watch list from \"\"\nwatch from \"5\"",
			store: "a@6 b@7", version: "7",
		},
		{
			name: "bookmarks move the place to resume from",
			answers: func() []any {
				return []any{watching(allSent("5"), bookmark("90"), failing(errNoConnection)), watching()}
			},
			asked:   "watch list from \"\"\nwatch from \"90\"",
			version: "90",
		},
		{
			name: "an expired watch lists again, at the last version first",
			answers: func() []any {
				return []any{watching(allSent("5"), added(pod("a", "6")), failing(errExpired)), watching(added(pod("b", "8")), allSent("9"))}
			},
			asked: "watch list from \"\"\nwatch list from \"6\"",
			store: "b@8", version: "9",
		},
		{
			name: "an expired list asks for what there is, at once",
			answers: func() []any {
				return []any{watching(allSent("5"), failing(errExpired)), errExpired, watching(added(pod("b", "8")), allSent("9"))}
			},
			asked: "watch list from \"\"\nwatch list from \"5\"\nwatch list from \"\"",
			store: "b@8", version: "9",
		},
		{
			name: "a version that the server has not reached asks for what there is",
			answers: func() []any {
				return []any{watching(added(pod("a", "4")), allSent("5"), failing(errExpired)), errTooLarge, watching(added(pod("a", "2")), allSent("3"))}
			},
			asked: "watch list from \"\"\nwatch list from \"5\"\nwatch list from \"\"",
			store: "a@2", version: "3", // what the server has lost is not seen any more
		},
		{
			name: "a watch list that breaks before its bookmark is no state",
			answers: func() []any {
				return []any{watching(added(pod("gone", "1")), failing(errNoConnection)), watching(added(pod("a", "2")), allSent("5"))}
			},
			asked: "watch list from \"\"\nwatch list from \"\"",
			store: "a@2", version: "5",
		},
		{
			name: "a server that ends a watch list before its bookmark may not know watch lists, and gets a list",
			answers: func() []any {
				ended := watching(added(pod("gone", "1")))
				close(ended.events)
				return []any{ended, fakeList{version: "5", objects: []object.Object{pod("a", "2")}}, watching()}
			},
			asked: "watch list from \"\"\nlist from \"\"\nwatch from \"5\"",
			store: "a@2", version: "5",
		},
		{
			name: "a watch list that fails otherwise is requested again, and no list",
			answers: func() []any {
				return []any{apierrors.NewInternalError(errors.New("etcd")), watching(added(pod("a", "2")), allSent("5"))}
			},
			asked: "watch list from \"\"\nwatch list from \"\"",
			store: "a@2", version: "5",
		},
		{
			name: "a bookmark before the end of a watch list does not end it",
			answers: func() []any {
				return []any{watching(added(pod("gone", "1")), bookmark("3"), failing(errNoConnection)), watching(added(pod("a", "2")), allSent("5"))}
			},
			asked: "watch list from \"\"\nwatch list from \"\"",
			store: "a@2", version: "5",
		},
		{
			name: "a list that expired is retried at no version, and the next one is at a version again",
			answers: func() []any {
				return []any{errNoWatchList, fakeList{version: "5", objects: []object.Object{pod("a", "1")}}, watching(failing(errExpired)),
					errNoWatchList, errExpired, errNoWatchList, fakeList{version: "9", objects: []object.Object{pod("a", "8")}},
					watching(failing(errTooLarge)),
					errNoWatchList, fakeList{version: "10", objects: []object.Object{pod("a", "8")}}, watching()}
			},
			asked: "watch list from \"\"\nlist from \"\"\nwatch from \"5\"\n" +
				"watch list from \"5\"\nlist from \"5\"\nwatch list from \"\"\nlist from \"\"\nwatch from \"9\"\n" +
				"watch list from \"9\"\nlist from \"9\"\nwatch from \"10\"",
			store: "a@8", version: "10",
		},
		{
			name: "versions are numbers of any length, and deletions move the store's too",
			answers: func() []any {
				return []any{watching(added(pod("a", "9")), allSent("99999999999999999999"),
					modified(pod("a", "100000000000000000000000000000")), modified(pod("a", "99999999999999999999999999999")),
					added(pod("b", "100000000000000000000000000001")), deleted(pod("b", "100000000000000000000000000002"))), watching()}
			},
			asked: "watch list from \"\"",
			store: "a@100000000000000000000000000000", version: "100000000000000000000000000002",
		},
		{
			name: "an object that cannot be used does not move the version, and the state is listed again",
			answers: func() []any {
				return []any{watching(added(pod("a", "1")), allSent("5"), failing(&undecodable{errors.New("bad")}), modified(pod("a", "7"))),
					watching(added(pod("a", "6")), allSent("8"))}
			},
			asked: "watch list from \"\"\nwatch list from \"5\"",
			store: "a@6", version: "8",
		},
		{
			name: "an event whose version is no number is an object that cannot be used",
			answers: func() []any {
				return []any{watching(allSent("5"), added(pod("a", "x"))), watching(added(pod("a", "6")), allSent("8"))}
			},
			asked: "watch list from \"\"\nwatch list from \"5\"",
			store: "a@6", version: "8",
		},
		{
			name: "a watch that resumes may repeat itself",
			answers: func() []any {
				return []any{watching(added(pod("a", "4")), allSent("5"), modified(pod("a", "6")), failing(errNoConnection)),
					watching(modified(pod("a", "3")), modified(pod("a", "6")), added(pod("b", "7")))}
			},
			asked: "watch list from \"\"\nwatch from \"5\"",
			store: "a@6 b@7", version: "7",
		},
		{
			name: "an empty list is a state",
			answers: func() []any {
				return []any{errNoWatchList, fakeList{version: "5", objects: nil}, watching()}
			},
			asked:   "watch list from \"\"\nlist from \"\"\nwatch from \"5\"",
			version: "5",
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source, informer := newTestInformer(t, c.answers()...)
				stop := start(t, informer)
				time.Sleep(time.Hour) // no time passes; every backoff has ended
				synctest.Wait()
				stop()
				want(t, "asked", source.log(), c.asked)
				want(t, "store", contents(informer), c.store)
				if got := informer.Snapshot().Version(); got != c.version {
					t.Errorf("version %q, want %q", got, c.version)
				}
				select {
				case <-informer.Synced():
				default:
					t.Error("the informer is not synced")
				}
			})
		})
	}
}

func TestBackoffGrowsIsJitteredAndStartsAgainAfterHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, random := range []float64{0, 0.5, 0.999} {
			b := backoff{random: func() float64 { return random }}
			for _, ms := range []int{800, 1600, 3200, 6400, 12800, 25600, 30000, 30000} {
				most := time.Duration(ms) * time.Millisecond
				began := time.Now()
				if err := b.wait(t.Context(), 0, nil); err != nil {
					t.Fatal(err)
				}
				pause := time.Since(began)
				if wanted := max(time.Duration(random*float64(most)), backoffFirst/8); pause != wanted {
					t.Errorf("random %v: waited %s, want %s", random, pause, wanted)
				}
			}
			time.Sleep(backoffReset + time.Second)
			began := time.Now()
			_ = b.wait(t.Context(), 0, nil)
			if pause := time.Since(began); pause > backoffFirst {
				t.Errorf("after health: waited %s, want at most %s", pause, backoffFirst)
			}
		}
	})
}

func TestRetryAfterIsHonoured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, informer := newTestInformer(t, apierrors.NewTooManyRequests("later", 40), watching(allSent("5")))
		stop := start(t, informer)
		defer stop()
		began := time.Now()
		<-informer.Synced()
		if waited := time.Since(began); waited < 40*time.Second {
			t.Errorf("asked again after %s, the server said 40s", waited)
		}
	})
}

func TestTooLargeVersionIsRecognisedInAllItsForms(t *testing.T) {
	timeout := func(message string, causes ...metav1.StatusCause) error {
		err := apierrors.NewTimeoutError(message, 1)
		err.ErrStatus.Details.Causes = causes
		return fmt.Errorf("listing: %w", err)
	}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"by its cause":          {timeout("x", metav1.StatusCause{Type: metav1.CauseTypeResourceVersionTooLarge}), true},
		"by its cause's words":  {timeout("x", metav1.StatusCause{Message: "Too large resource version"}), true},
		"by its words":          {timeout("Too large resource version: 9, current: 1"), true},
		"another timeout":       {timeout("x", metav1.StatusCause{Message: "too slow"}), false},
		"the words of no retry": {apierrors.NewBadRequest("Too large resource version: 9"), false},
		"no status at all":      {errNoConnection, false},
	} {
		if have := isTooLargeVersion(c.err); have != c.want {
			t.Errorf("%s: %v", name, have)
		}
	}
}

// A server that has no room, or is not there, says nothing of the place in the history.
func TestAWatchThatIsRefusedForNowIsAskedForAgainWithoutAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		source, informer := newTestInformer(t, watching(added(pod("a", "1")), allSent("5"), failing(errNoConnection)),
			apierrors.NewTooManyRequests("later", 40), refused, watching(added(pod("b", "6"))))
		defer start(t, informer)()
		<-informer.Synced()
		began := time.Now()
		seen, stop := informer.Observed("6")
		defer stop()
		<-seen
		want(t, "asked", source.log(), "watch list from \"\"\nwatch from \"5\"\nwatch from \"5\"\nwatch from \"5\"")
		if waited := time.Since(began); waited < 40*time.Second {
			t.Errorf("asked again after %s, the server said 40s", waited)
		}
		want(t, "store", contents(informer), "a@1 b@6")
	})
}

func TestNoVersionIsSeenBeforeTheFirstStateIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching(added(pod("a", "7")), bookmark("8"))
		_, informer := newTestInformer(t, w)
		defer start(t, informer)()
		synctest.Wait()
		seen, stop := informer.Observed("1")
		defer stop()
		select {
		case <-seen:
			t.Error("a version has been seen of a state that is not whole")
		default:
		}
		if s := informer.Snapshot(); s.Version() != "" || s.Len() != 0 {
			t.Errorf("readers see %d objects at version %q", s.Len(), s.Version())
		}
		w.events <- allSent("9")
		synctest.Wait()
		<-seen
		if s := informer.Snapshot(); s.Version() != "9" || s.Len() != 1 {
			t.Errorf("%d objects at version %q", s.Len(), s.Version())
		}
	})
}

// The watches of many clients that began together do not end together.
func TestWatchesAreAskedForWithTimeoutsThatDiffer(t *testing.T) {
	_, pods := newTestInformer(t)
	r := pods.informer.reflect
	least, most := 3*minWatchTimeout, time.Duration(0)
	for range 1000 {
		timeout := r.watchOptions().Timeout
		least, most = min(least, timeout), max(most, timeout)
	}
	if least < 5*time.Minute || least > 6*time.Minute || most < 9*time.Minute || most > 10*time.Minute {
		t.Errorf("from %s to %s, want all between 5 and 10 minutes", least, most)
	}
}

func TestAQuietWatchWhoseTimeIsUpIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := watching()
		source, informer := newTestInformer(t, watching(allSent("5"), failing(errNoConnection)), quiet, watching())
		defer start(t, informer)()
		time.Sleep(time.Minute)
		asked := source.log()
		began := time.Now()
		close(quiet.events)
		synctest.Wait()
		if log := source.log(); log != asked+"\nwatch from \"5\"" || time.Since(began) != 0 || informer.Trouble() != nil {
			t.Errorf("after %s, trouble %v, asked:\n%s", time.Since(began), informer.Trouble(), log)
		}
	})
}

func TestShortWatchesAreFailuresAndBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := []any{watching(allSent("5"), failing(errNoConnection))}
		for range 100 {
			w := watching()
			close(w.events)
			answers = append(answers, w)
		}
		source, informer := newTestInformer(t, answers...)
		stop := start(t, informer)
		time.Sleep(time.Minute)
		synctest.Wait()
		stop()
		source.mu.Lock()
		defer source.mu.Unlock()
		if n := len(source.asked); n > 40 {
			t.Errorf("%d watches within a minute against a server that ends each at once", n)
		}
	})
}

func TestEverySleepEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, informer := newTestInformer(t) // every answer is an error
		stop := start(t, informer)
		time.Sleep(10 * time.Minute) // deep in backoff
		began := time.Now()
		stop()
		if waited := time.Since(began); waited != 0 {
			t.Errorf("stopping took %s", waited)
		}
	})
}

func TestWaitForSyncSaysWhatIsInTheWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, informer := newTestInformer(t, errForbiddenList, errForbiddenList, errForbiddenList, errForbiddenList, errForbiddenList, errForbiddenList)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		err := informer.WaitForSync(ctx)
		var notSynced *NotSyncedError
		if !errors.As(err, &notSynced) || notSynced.Reason != "the informer has not been started" {
			t.Errorf("not started: %v", err)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v does not say that time ran out", err)
		}

		stop := start(t, informer)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = informer.WaitForSync(ctx)
		if !errors.As(err, &notSynced) || notSynced.Reason != "forbidden" || !apierrors.IsForbidden(err) {
			t.Errorf("forbidden: %v", err)
		}
		stop()
	})
}

func TestWaitForSyncTellsTheReasonsApart(t *testing.T) {
	for reason, answer := range map[string]error{
		"forbidden":                           errForbiddenList,
		"the server does not serve this kind": apierrors.NewNotFound(podResource, ""),
		"the server cannot be reached":        &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED},
		"the server is overloaded":            apierrors.NewTooManyRequests("later", 3),
		"an object cannot be used":            &undecodable{errors.New("bad")},
		"the server answers 500":              apierrors.NewInternalError(errors.New("etcd")),
		"the connection fails":                errNoConnection,
		"the first list has not ended yet":    nil,
	} {
		t.Run(reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answers := []any{watching()} // that never gets to its bookmark
				if answer != nil {
					answers = nil
					for range 10 {
						answers = append(answers, answer)
					}
				}
				_, informer := newTestInformer(t, answers...)
				defer start(t, informer)()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				err := informer.WaitForSync(ctx)
				var notSynced *NotSyncedError
				if !errors.As(err, &notSynced) || notSynced.Reason != reason || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v", err)
				}
				if answer != nil && !errors.Is(err, answer) {
					t.Errorf("%v does not lead to the last error", err)
				}
				if waited := time.Since(began); waited != time.Second {
					t.Errorf("waited %s", waited)
				}
			})
		})
	}
}

// A caller that waits is woken, and does not poll.
func TestWaitForSyncEndsWithTheSyncOrTheStopAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watching()
		_, informer := newTestInformer(t, w)
		stop := start(t, informer)
		const moment = time.Hour + 1234567*time.Nanosecond // no multiple of anybody's interval
		time.AfterFunc(moment, func() { w.events <- allSent("5") })
		began := time.Now()
		if err := informer.WaitForSync(t.Context()); err != nil || time.Since(began) != moment {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		stop()
		if err := informer.WaitForSync(t.Context()); err != nil {
			t.Errorf("synced and then stopped: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		_, informer := newTestInformer(t, watching())
		stop := start(t, informer)
		const moment = time.Hour + 1234567*time.Nanosecond
		time.AfterFunc(moment, stop)
		began := time.Now()
		err := informer.WaitForSync(t.Context())
		var notSynced *NotSyncedError
		if !errors.As(err, &notSynced) || notSynced.Reason != "the informer has stopped" || time.Since(began) != moment {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

func TestKindThatIsNotServedBacksOffAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		missing := apierrors.NewNotFound(podResource, "")
		_, informer := newTestInformer(t, watching(added(pod("a", "4")), allSent("5"), failing(errNoConnection)),
			missing, missing, missing, watching(added(pod("b", "6"))))
		stop := start(t, informer)
		defer stop()
		time.Sleep(time.Hour)
		synctest.Wait()
		want(t, "store", contents(informer), "a@4 b@6")
		if err := informer.Trouble(); err != nil {
			t.Errorf("trouble after recovery: %v", err)
		}
	})
}

func TestSecondRunIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, informer := newTestInformer(t, watching(allSent("1")))
		stop := start(t, informer)
		synctest.Wait()
		if err := informer.informer.run(t.Context()); err == nil {
			t.Error("a second run was not refused")
		}
		stop()
		if _, err := informer.AddHandler(func(Event[*corev1.Pod]) {}, HandlerOptions{}); err == nil {
			t.Error("a handler was added after the stop")
		}
	})
}

func TestTroubleIsLoggedOnceForEachReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// A server that takes watches and ends them at once, for ten minutes, and
		// one that serves the kind no more after that.
		answers := []any{watching(allSent("5"), failing(errNoConnection))}
		for range 50 {
			w := watching()
			close(w.events)
			answers = append(answers, w)
		}
		for range 50 {
			answers = append(answers, apierrors.NewNotFound(podResource, ""))
		}
		source := &scripted{t: t, answers: append(answers, watching(added(pod("a", "6"))))}
		var log bytes.Buffer
		informer := SharedInformer[*corev1.Pod]{informer: newInformer("pods", source, podContent(), slog.New(slog.NewTextHandler(&log, nil)))}
		stop := start(t, informer)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		stop()
		if n := strings.Count(log.String(), "does not serve this kind"); n != 1 {
			t.Errorf("the kind that is not served was said %d times", n)
		}
		if n := strings.Count(log.String(), "watches end at once"); n < 1 || n > 4 {
			t.Errorf("watches that end at once were said %d times", n)
		}
		if n := strings.Count(log.String(), "\n"); n > 12 {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
	})
}

func TestWhoReachesTheServerWakesThoseWhoWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const outage = 10 * time.Minute
		began := time.Now()
		var server pulse
		back := make([]time.Duration, 5)
		for n := range back {
			source := &outageSource{scripted: scripted{t: t}, until: began.Add(outage)}
			informer := SharedInformer[*corev1.Pod]{informer: newInformer("pods", source, podContent(), slog.New(slog.DiscardHandler))}
			informer.informer.reflect.server = &server
			// Each one is deep in backoff, at a moment of its own.
			informer.informer.reflect.backoff.random = func() float64 { return 0.9 - 0.1*float64(n) }
			defer start(t, informer)()
			go func() {
				<-informer.Synced()
				back[n] = time.Since(began) - outage
			}()
		}
		time.Sleep(outage + time.Minute)
		synctest.Wait()
		for n := range back {
			if back[n] == 0 || back[n] != back[0] {
				t.Errorf("back after the outage: %v; want all with the first", back)
				break
			}
		}
	})
}

// outageSource cannot be reached for a while.
type outageSource struct {
	scripted
	until time.Time
}

func (s *outageSource) watch(ctx context.Context, o client.WatchOptions) (stream, error) {
	if time.Now().Before(s.until) {
		return nil, errNoConnection
	}
	w := watching(allSent("5"))
	w.ctx, w.before = ctx, o.BeforeRead
	return w, nil
}
