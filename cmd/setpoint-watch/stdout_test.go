// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// pager takes a write when it is told to.
type pager struct{ next chan error }

func (p pager) Write(b []byte) (int, error) {
	if err := <-p.next; err != nil {
		return 0, err
	}
	return len(b), nil
}

func TestWhoDoesNotReadHoldsNothingUpAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		p := pager{make(chan error)}
		r := &reader{out: p, ctx: ctx, gone: func() {}}
		go func() {
			time.Sleep(time.Hour)
			stop()
		}()
		began := time.Now()
		if _, err := r.Write([]byte("a\n")); !errors.Is(err, errUnread) {
			t.Errorf("%v, want errUnread", err)
		}
		if took := time.Since(began); took != time.Hour+lastWrite {
			t.Errorf("given up after %s", took)
		}
		if _, err := r.Write([]byte("b\n")); !errors.Is(err, errUnread) {
			t.Errorf("%v; what was left behind may still be written, and nothing may come after it", err)
		}
		p.next <- nil
	})
}

func TestALastWriteThatIsReadIsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		p := pager{make(chan error, 1)}
		go func() {
			time.Sleep(lastWrite / 2)
			p.next <- nil
		}()
		if n, err := (&reader{out: p, ctx: ctx}).Write([]byte("a\n")); n != 2 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}

func TestAReaderThatGoesEndsTheWatchBeforeTheNextWrite(t *testing.T) {
	for name, goes := range map[string]bool{"goes": true, "stays": false} {
		t.Run(name, func(t *testing.T) {
			in, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			defer out.Close()
			ctx, stop := context.WithCancel(t.Context())
			gone := false
			r := &reader{out: out, ctx: ctx, gone: func() { gone = true }}
			done := make(chan struct{})
			go func() {
				defer close(done)
				r.awaitGone()
			}()
			if _, err := r.Write([]byte("a line\n")); err != nil {
				t.Fatal(err)
			}
			if goes {
				_ = in.Close()
			} else {
				stop()
			}
			<-done
			stop()
			if gone != goes {
				t.Errorf("gone: %v, want %v", gone, goes)
			}
		})
	}
}

func TestAReaderThatHasGoneEndsTheWatch(t *testing.T) {
	gone := 0
	p := pager{make(chan error, 2)}
	r := &reader{out: p, ctx: t.Context(), gone: func() { gone++ }}
	p.next <- io.ErrShortWrite
	if _, err := r.Write(nil); gone != 0 || !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("ended for %v", err)
	}
	p.next <- syscall.EPIPE
	if _, err := r.Write(nil); gone != 1 || !errors.Is(err, syscall.EPIPE) {
		t.Errorf("not ended for %v", err)
	}
}

// Two terminal sinks write from two goroutines. A line that is longer than the pipe is written in parts.
func TestLinesOfTwoSinksDoNotMix(t *testing.T) {
	const lines, length = 20, 200 << 10
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r := newReader(t.Context(), out)
	var writers sync.WaitGroup
	for _, letter := range []string{"a", "b"} {
		line := []byte(strings.Repeat(letter, length) + "\n")
		writers.Go(func() {
			for range lines {
				if n, err := r.Write(line); n != len(line) || err != nil {
					t.Errorf("%d bytes of %d were written: %v", n, len(line), err)
				}
			}
		})
	}
	go func() {
		writers.Wait()
		_ = out.Close()
	}()
	read := map[string]int{}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, 4*length)
	for scanner.Scan() {
		line := scanner.Text()
		if len(line) != length || strings.Trim(line, line[:1]) != "" {
			t.Errorf("a line of %d bytes is not as it was written", len(line))
		} else {
			read[line[:1]]++
		}
	}
	if err := scanner.Err(); err != nil || read["a"] != lines || read["b"] != lines {
		t.Errorf("%v lines: %v, want %d of each", read, err, lines)
	}
}
