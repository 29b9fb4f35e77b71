// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// script is an API server that answers as it is told, one line after the other,
// and keeps what it was asked. A watch gets its events, and then ends.
type script struct {
	t     *testing.T
	turns []turn
	asked []string
	saw   []string
	done  context.CancelFunc
}

type turn struct {
	err    error
	listed string   // the version of the list
	events []string // "+name@version", "-name@version", "bookmark@version"
	status *metav1.Status
}

func (s *script) next(what string) turn {
	s.asked = append(s.asked, what)
	if len(s.turns) == 0 {
		s.done()
		return turn{err: errors.New("the script is over")}
	}
	next := s.turns[0]
	s.turns = s.turns[1:]
	return next
}

func (s *script) run() (log string) {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.done = cancel
	var out strings.Builder
	follow(ctx, feed[*corev1.Pod]{
		what: "pods",
		list: func(context.Context, metav1.ListOptions) ([]*corev1.Pod, string, error) {
			next := s.next("list")
			return nil, next.listed, next.err
		},
		watch: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			next := s.next("watch " + options.ResourceVersion)
			if next.err != nil {
				return nil, next.err
			}
			w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: len(next.events) + 1})
			for _, event := range next.events {
				name, version, _ := strings.Cut(event, "@")
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: strings.TrimLeft(name, "+-"), ResourceVersion: version}}
				switch {
				case name == "bookmark":
					w.Action(watch.Bookmark, pod)
				case name[0] == '-':
					w.Delete(pod)
				default:
					w.Modify(pod)
				}
			}
			if next.status != nil {
				w.Error(next.status)
			}
			w.Stop()
			return w, nil
		},
		replace: func([]*corev1.Pod) { s.saw = append(s.saw, "list") },
		change: func(pod *corev1.Pod, gone bool) {
			if s.saw = append(s.saw, "+"+pod.Name); gone {
				s.saw[len(s.saw)-1] = "-" + pod.Name
			}
		},
	}, slog.New(slog.NewTextHandler(&out, nil)))
	return out.String()
}

func TestFollowGoesOnFromWhereItWas(t *testing.T) {
	refused := fmt.Errorf("dial: %w", syscall.ECONNREFUSED)
	expired := &apierrors.NewResourceExpired("too old").ErrStatus
	for _, test := range []struct {
		name       string
		turns      []turn
		asked, saw []string
	}{{
		name:  "a watch that ends is taken up at its last event, or bookmark",
		turns: []turn{{listed: "5"}, {events: []string{"+a@6", "-b@7"}}, {events: []string{"bookmark@9"}}, {}},
		asked: []string{"list", "watch 5", "watch 7", "watch 9", "watch 9"},
		saw:   []string{"list", "+a", "-b"},
	}, {
		name:  "a server that is away changes nothing",
		turns: []turn{{err: refused}, {listed: "5"}, {events: []string{"+a@6"}}, {err: refused}, {err: refused}, {events: []string{"+b@7"}}},
		asked: []string{"list", "list", "watch 5", "watch 6", "watch 6", "watch 6", "watch 7"},
		saw:   []string{"list", "+a", "+b"},
	}, {
		name:  "a version that is too old, in an event or an answer, asks for a list",
		turns: []turn{{listed: "5"}, {status: expired}, {listed: "8"}, {err: apierrors.NewResourceExpired("too old")}, {listed: "9"}},
		asked: []string{"list", "watch 5", "list", "watch 8", "list", "watch 9"},
		saw:   []string{"list", "list", "list"},
	}, {
		name:  "a busy server is asked again for the same",
		turns: []turn{{listed: "5"}, {err: apierrors.NewTooManyRequests("busy", 1)}, {err: apierrors.NewServiceUnavailable("stopping")}},
		asked: []string{"list", "watch 5", "watch 5", "watch 5"},
		saw:   []string{"list"},
	}} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{t: t, turns: test.turns}
				s.run()
				if !slices.Equal(s.asked, test.asked) || !slices.Equal(s.saw, test.saw) {
					t.Errorf("asked %q\n want %q\n  saw %q\n want %q", s.asked, test.asked, s.saw, test.saw)
				}
			})
		})
	}
}

func TestFollowTellsOnceThatTheServerIsAwayAndOnceThatItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, turns: []turn{{listed: "5"}}}
		for range 20 {
			s.turns = append(s.turns, turn{err: fmt.Errorf("dial: %w", syscall.ECONNREFUSED)})
		}
		s.turns = append(s.turns, turn{events: []string{"+a@6"}}, turn{})
		begun := time.Now()
		log := s.run()
		if n := strings.Count(log, "does not answer"); n != 1 {
			t.Errorf("told %d times that the server is away:\n%s", n, log)
		}
		if n := strings.Count(log, "is back"); n != 1 {
			t.Errorf("told %d times that the server is back:\n%s", n, log)
		}
		// 20 failures wait 0.1 s, doubling up to 2 s, each between half and one and
		// a half of that.
		if took := time.Since(begun); took < 15*time.Second || took > 60*time.Second {
			t.Errorf("20 failures took %s", took)
		}
	})
}
