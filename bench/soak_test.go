// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/object"
)

func TestThePlanOfASoakIsThatOfItsSeed(t *testing.T) {
	steps, cleanup := soakPlan("a", 7, 5*time.Minute)
	again, cleanupAgain := soakPlan("a", 7, 5*time.Minute)
	if !reflect.DeepEqual(steps, again) || !reflect.DeepEqual(cleanup, cleanupAgain) {
		t.Error("the same seed gives another plan")
	}
	if other, _ := soakPlan("a", 8, 5*time.Minute); reflect.DeepEqual(steps, other) {
		t.Error("another seed gives the same plan")
	}
}

func TestThePlanOfASoakHasEverythingAndLeavesNothing(t *testing.T) {
	for _, length := range []time.Duration{shortestSoak * 2 / 3, time.Minute, 30 * time.Minute} {
		for seed := range uint64(20) {
			steps, cleanup := soakPlan("x", seed, length)
			alive, count, last := map[string]soakAction{}, map[soakAction]int{}, time.Duration(0)
			for i, step := range append(steps, cleanup...) {
				count[step.action]++
				if step.at < last || step.at > length {
					t.Fatalf("seed %d: step %d is at %s, after %s of %s", seed, i, step.at, last, length)
				}
				last = step.at
				if step.action == handOver && step.at > length*3/5 {
					t.Errorf("seed %d: managers hand over at %s of %s", seed, step.at, length)
				}
				for _, life := range soakLifes {
					changes := step.action == life.change || step.action == scaleDeployment && life.change == rollDeployment
					if want := step.action == life.reverse || changes; want && alive[step.name] != life.begin {
						t.Fatalf("seed %d: to %s %s, which is not there", seed, step.action, step.name)
					}
					if step.action == life.reverse {
						delete(alive, step.name)
					}
					if step.action == life.begin {
						if alive[step.name] != "" {
							t.Fatalf("seed %d: %s is there already", seed, step.name)
						}
						alive[step.name] = life.begin
					}
				}
			}
			if len(alive) > 0 {
				t.Errorf("seed %d: %v are left", seed, alive)
			}
			for _, action := range []soakAction{createDeployment, deleteDeployment, createConfigMap, cutConnections, restartServer, handOver} {
				if count[action] == 0 {
					t.Errorf("seed %d: nothing does %s in %s", seed, action, length)
				}
			}
			if length > time.Minute && len(count) != 16 {
				t.Errorf("seed %d: only %v happen in %s", seed, count, length)
			}
		}
	}
}

func TestASoakFindsWhatAnInformerHasOtherwise(t *testing.T) {
	key := func(name string) object.Key { return object.Key{Namespace: "n", Name: name} }
	server := map[object.Key]soakState{key("a"): {"u1", "1"}, key("b"): {"u2", "2"}}
	for _, test := range []struct {
		name                           string
		has                            map[object.Key]soakState
		objects, missing, extra, wrong int
		first                          string
	}{
		{"the same", map[object.Key]soakState{key("a"): {"u1", "1"}, key("b"): {"u2", "2"}}, 2, 0, 0, 0, ""},
		{"one missing", map[object.Key]soakState{key("a"): {"u1", "1"}}, 2, 1, 0, 0, "missing n/b"},
		{"one too many", map[object.Key]soakState{key("a"): {"u1", "1"}, key("b"): {"u2", "2"}, key("c"): {"u3", "3"}}, 2, 0, 1, 0, "extra n/c"},
		{"another version", map[object.Key]soakState{key("a"): {"u1", "7"}, key("b"): {"u2", "2"}}, 2, 0, 0, 1, "7 instead of 1 of n/a"},
		{"another object of the name", map[object.Key]soakState{key("a"): {"u9", "1"}, key("b"): {"u2", "2"}}, 2, 0, 0, 1, "1 instead of 1 of n/a"},
	} {
		d := soakCompare(test.name, server, test.has)
		if want := (soakDifference{test.name, test.objects, test.missing, test.extra, test.wrong, test.first}); d != want {
			t.Errorf("%s: %+v, want %+v", test.name, d, want)
		}
		err := soakVerdict([]soakDifference{d}, nil)
		if (err == nil) != (test.first == "") || err != nil && !strings.Contains(err.Error(), test.first) {
			t.Errorf("%s: the verdict is %v", test.name, err)
		}
	}
}

func TestASoakFindsWhatHasGrown(t *testing.T) {
	start := soakFigures{heap: 20, goroutines: 100, files: 30}
	for _, test := range []struct {
		end  soakFigures
		want string
	}{
		{soakFigures{20, 100, 30}, ""},
		{soakFigures{1, 1, 1}, ""},
		{soakFigures{27, 120, 43}, ""},
		{soakFigures{27.1, 120, 43}, "heap: 27.1, which was 20.0 and may be 27.0"},
		{soakFigures{27, 121, 43}, "goroutines: 121.0, which was 100.0 and may be 120.0"},
		{soakFigures{27, 120, 44}, "open files: 44.0, which was 30.0 and may be 43.0"},
	} {
		err := soakVerdict(nil, []soakProcess{{"p", start, test.end}})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("from %v to %v: %v, want %q", start, test.end, err, test.want)
		}
	}
}

func TestGoroutinesAreReadFromTheirProfile(t *testing.T) {
	if n, err := goroutinesOf("goroutine profile: total 41\n3 @ 0x1\n"); n != 41 || err != nil {
		t.Errorf("%v, %v", n, err)
	}
	if _, err := goroutinesOf("404 page not found"); err == nil {
		t.Error("want an error")
	}
}

// echo answers with what it reads.
func echo(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

func TestTheProxyOfASoakCutsWhatIsOpenAndGoesOn(t *testing.T) {
	p, err := startSoakProxy(t.Context(), echo(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	dial := func() net.Conn {
		t.Helper()
		var dialer net.Dialer
		c, err := dialer.DialContext(t.Context(), "tcp", p.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for range 2 { // with and without a reset
		before := []net.Conn{dial(), dial()}
		p.cut()
		for _, c := range before {
			if _, err := c.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
				t.Errorf("a connection is not cut: %v", err)
			}
		}
	}
	last := dial()
	p.stop()
	if _, err := last.Read(make([]byte, 1)); err == nil || os.IsTimeout(err) {
		t.Errorf("a connection outlives the proxy: %v", err)
	}
	if len(p.open) > 0 {
		t.Errorf("%d connections are still held", len(p.open))
	}
}

func TestASoakIsRefusedThatIsTooShort(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), []string{"soak", "--for", "5s"}, &out); err == nil || !strings.Contains(err.Error(), "--for 5s") {
		t.Errorf("%v", err)
	}
}

// A short soak on a real control plane with real managers.
func TestAShortSoakFindsNothing(t *testing.T) {
	server := os.Getenv("SETPOINT_CONTROLPLANE_BIN")
	if server == "" || testing.Short() {
		t.Skip("SETPOINT_CONTROLPLANE_BIN names no control plane, or -short; \"make test\" runs it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	var out strings.Builder
	if err := run(ctx, []string{"soak", "--bin", filepath.Dir(server), "--for", "30s", "--seed", "1"}, &out); err != nil {
		t.Fatalf("%v, after\n%s", err, out.String())
	}
	for _, want := range []string{"\nmanager that leads ", "\npods, by its handler, at the end ", "\nrestart the control plane ", "\nhave the managers hand over "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
