// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux && !race && !msan && !asan

package quiet

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// pair returns two ends of a connection over loopback, of which the first is quiet.
func pair(t testing.TB) (quiet, plain net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if quiet, err = dial(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if plain, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = quiet.Close(), plain.Close() })
	if _, is := quiet.(*conn); !is {
		t.Fatalf("the connection is a %T", quiet)
	}
	return quiet, plain
}

// Both directions at once, in pieces of all sizes, more than the kernel has room for.
func TestEverythingArrivesInBothDirections(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	draw := rand.NewPCG(seed, 0)
	all := make([]byte, 8<<20)
	for i := range all {
		all[i] = byte(draw.Uint64())
	}
	quiet, plain := pair(t)
	send := func(c net.Conn, seed uint64) error {
		sizes := rand.New(rand.NewPCG(seed, 1))
		for rest := all; len(rest) > 0; {
			n := min(1+sizes.IntN(1<<sizes.IntN(20)), len(rest))
			if wrote, err := c.Write(rest[:n]); err != nil || wrote != n {
				return errors.Join(err, io.ErrShortWrite)
			}
			rest = rest[n:]
		}
		return nil
	}
	receive := func(c net.Conn, seed uint64) (got []byte, err error) {
		sizes := rand.New(rand.NewPCG(seed, 2))
		for len(got) < len(all) {
			b := make([]byte, 1+sizes.IntN(1<<sizes.IntN(17)))
			n, err := c.Read(b)
			if got = append(got, b[:n]...); err != nil {
				return got, err
			}
		}
		return got, nil
	}
	var work sync.WaitGroup
	for name, c := range map[string]net.Conn{"quiet": quiet, "plain": plain} {
		work.Go(func() {
			if err := send(c, seed); err != nil {
				t.Errorf("%s: sending: %v", name, err)
			}
		})
		work.Go(func() {
			if got, err := receive(c, seed); err != nil || !bytes.Equal(got, all) {
				t.Errorf("%s: received %d of %d bytes, equal: %t: %v", name, len(got), len(all), bytes.Equal(got, all), err)
			}
		})
	}
	work.Wait()
}

// Errors have the words of the net package. Their ports differ.
func TestErrorsAreThoseOfTheNetPackage(t *testing.T) {
	for name, c := range map[string]struct {
		provoke func(own, other net.Conn) error
		is      error
		timeout bool
	}{
		"the end": {provoke: func(own, other net.Conn) error {
			_ = other.Close()
			_, err := own.Read(make([]byte, 10))
			return err
		}, is: io.EOF},
		"nothing to read into": {provoke: func(own, _ net.Conn) error {
			_, err := own.Read(nil)
			return err
		}},
		"nothing to write": {provoke: func(own, _ net.Conn) error {
			_, err := own.Write(nil)
			return err
		}},
		"closed before a read": {provoke: func(own, _ net.Conn) error {
			_ = own.Close()
			_, err := own.Read(make([]byte, 10))
			return err
		}, is: net.ErrClosed},
		"closed during a read": {provoke: func(own, _ net.Conn) error {
			time.AfterFunc(10*time.Millisecond, func() { _ = own.Close() })
			_, err := own.Read(make([]byte, 10))
			return err
		}, is: net.ErrClosed},
		"closed before a write": {provoke: func(own, _ net.Conn) error {
			_ = own.Close()
			_, err := own.Write([]byte("x"))
			return err
		}, is: net.ErrClosed},
		"too late to read": {provoke: func(own, _ net.Conn) error {
			_ = own.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
			_, err := own.Read(make([]byte, 10))
			return err
		}, is: os.ErrDeadlineExceeded, timeout: true},
		"too late to write": {provoke: func(own, _ net.Conn) error {
			_ = own.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			for {
				if _, err := own.Write(make([]byte, 1<<20)); err != nil {
					return err
				}
			}
		}, is: os.ErrDeadlineExceeded, timeout: true},
		"a reset before a read": {provoke: func(own, other net.Conn) error {
			if quiet, is := other.(*conn); is {
				other = quiet.Conn
			}
			_ = other.(*net.TCPConn).SetLinger(0) // it is not closed in order
			_ = other.Close()
			_, err := own.Read(make([]byte, 10))
			return err
		}, is: syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			quiet, plain := pair(t)
			have := c.provoke(quiet, plain)
			quiet, plain = pair(t)
			want := c.provoke(plain, quiet)
			if !errors.Is(have, c.is) && c.is != nil || c.is == nil && have != nil {
				t.Errorf("the error is %v, want %v", have, c.is)
			}
			if of, ok := errors.AsType[net.Error](have); c.timeout != (ok && of.Timeout()) {
				t.Errorf("a timeout: %t, want %t", !c.timeout, c.timeout)
			}
			if have, want := portless(have), portless(want); have != want {
				t.Errorf("the error says %q, that of the net package %q", have, want)
			}
		})
	}
}

// portless is the text of an error without ports.
func portless(err error) string {
	if err == nil {
		return ""
	}
	words := strings.Fields(err.Error())
	for i, word := range words {
		if host, _, found := strings.Cut(word, ":"); found && strings.HasPrefix(host, "127.") {
			words[i] = host
		}
	}
	return strings.Join(words, " ")
}

func TestThereIsATimerAsLongAsThereIsAConnection(t *testing.T) {
	state := func() (open int, timed bool) {
		connections.mu.Lock()
		defer connections.mu.Unlock()
		return connections.open, connections.timed
	}
	before, _ := state()
	a, _ := pair(t)
	b, _ := pair(t)
	if open, timed := state(); open != before+2 || !timed {
		t.Fatalf("%d connections are open, want %d; there is a timer: %t", open, before+2, timed)
	}
	_, _, _, _ = a.Close(), a.Close(), b.Close(), b.Close()
	if open, _ := state(); open != before {
		t.Errorf("%d connections are open, want %d", open, before)
	}
	for began := time.Now(); before == 0; time.Sleep(10 * time.Millisecond) {
		if _, timed := state(); !timed {
			break
		}
		if time.Since(began) > time.Minute {
			t.Fatal("the timer goes on without a connection")
		}
	}
}

// A process that wakes for each of many events takes less CPU with quiet connections.
func BenchmarkAnEvent(b *testing.B) {
	for _, name := range []string{"quiet", "plain"} {
		b.Run(name, func(b *testing.B) {
			near, far := pair(b)
			if far = Conn(far); name == "plain" {
				near, far = near.(*conn).Conn, far.(*conn).Conn
			}
			var reading sync.WaitGroup
			reading.Go(func() {
				for into := make([]byte, 64); ; {
					if _, err := near.Read(into); err != nil {
						return
					}
				}
			})
			before := cpu(b)
			for b.Loop() {
				time.Sleep(time.Millisecond)
				if _, err := far.Write([]byte("event")); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
			_ = far.Close()
			reading.Wait()
		})
	}
}

func cpu(t testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
