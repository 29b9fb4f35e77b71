// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/client"
)

// asked is a server that notes when it is asked.
type asked struct {
	began time.Time
	at    []time.Duration
	down  time.Duration // for so long it fails
}

func (a *asked) discover(context.Context) ([]client.Served, error) {
	a.at = append(a.at, time.Since(a.began))
	if time.Since(a.began) < a.down {
		return nil, errors.New("connection refused")
	}
	return []client.Served{served("", "v1", "Pod")}, nil
}

func TestAFollowerAsksSoonerAfterAChangeAndAtFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &asked{began: time.Now(), down: 5 * time.Second}
		var log bytes.Buffer
		f := NewFollower(server.discover, slog.New(slog.NewTextHandler(&log, nil)), time.Second, 30*time.Second)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		if !f.First(ctx, func(_ context.Context, s Set) bool { return len(s.Served()) == 1 }) {
			t.Fatal("it ended without kinds")
		}
		// After 0, 1, 1+2, 1+2+4 s.
		if want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}; !slices.Equal(server.at, want) {
			t.Errorf("the server was asked at %v, want %v", server.at, want)
		}
		if n := strings.Count(log.String(), "not all kinds are known"); n != 1 {
			t.Errorf("the trouble was logged %d times: %s", n, &log)
		}

		server.began, server.at, server.down = time.Now(), nil, 0
		seen, ended := 0, make(chan struct{})
		go func() {
			defer close(ended)
			f.Run(ctx, func(context.Context, Set) { seen++ })
		}()
		time.Sleep(40 * time.Second)
		f.Soon()
		f.Soon()
		time.Sleep(25 * time.Second)
		stop()
		<-ended
		// Every 30 s, and 1, 1+2, … s after the call.
		want := []time.Duration{30 * time.Second, 41 * time.Second, 43 * time.Second, 47 * time.Second, 55 * time.Second}
		if !slices.Equal(server.at, want) || seen != len(want) {
			t.Errorf("the server was asked at %v, want %v; %d calls", server.at, want, seen)
		}
	})
}

func TestAFollowerEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &asked{began: time.Now(), down: time.Hour}
		f := NewFollower(server.discover, slog.New(slog.DiscardHandler), time.Second, 30*time.Second)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if f.First(ctx, func(context.Context, Set) bool { return true }) {
			t.Error("it has kinds without an answer")
		}
		f.Run(ctx, func(context.Context, Set) { t.Error("a server that is away says something") })
	})
}

// A server that takes the request and never answers, as one whose aggregated server is stuck.
func TestADiscoveryWithoutAnswerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		discover := func(ctx context.Context) ([]client.Served, error) {
			if asked++; asked == 1 {
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return []client.Served{served("", "v1", "Pod")}, nil
		}
		var log bytes.Buffer
		f := NewFollower(discover, slog.New(slog.NewTextHandler(&log, nil)), time.Second, 30*time.Second)
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		if !f.First(ctx, func(context.Context, Set) bool { return true }) || asked != 2 {
			t.Fatalf("the server was asked %d times", asked)
		}
		if !strings.Contains(log.String(), "no answer within 32s") {
			t.Errorf("the log is %s", &log)
		}
	})
}
