// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/adapters/clientgo"
	"github.com/setpoint-io/setpoint/object"
)

// asPanicking has the test program run the informer whose handler panics: for "add", "update" or "delete".
const asPanicking = "SETPOINT_TEST_PANIC_OF_A_HANDLER"

// A program on client-go ends when a handler panics, and is started again. It must not go on without the event.
func TestAPanicOfAHandlerEndsTheProcess(t *testing.T) {
	if when := os.Getenv(asPanicking); when != "" {
		panicInAHandler(t, when)
		fmt.Println("the process goes on")
		return
	}
	for _, when := range []string{"add", "update", "delete"} {
		t.Run(when, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestAPanicOfAHandlerEndsTheProcess$", "-test.count=1", "-test.timeout=30s") //nolint:gosec // it is this test
			child.Env = append(os.Environ(), asPanicking+"="+when)
			out, err := child.CombinedOutput()
			failed, ok := errors.AsType[*exec.ExitError](err)
			if !ok || failed.ExitCode() != 2 {
				t.Errorf("the process ended with %v, want the exit code of a panic", err)
			}
			if text := string(out); !strings.Contains(text, "panic: no "+when+" today\n") || strings.Contains(text, "the process goes on") {
				t.Errorf("the process has written:\n%s", text)
			}
		})
	}
}

func panicInAHandler(t *testing.T, when string) {
	t.Helper()
	inWorld(t, func(t *testing.T, w *world) {
		informer := w.podInformer(t, clientgo.Options{})
		panics := func(what string) {
			if what == when {
				panic("no " + what + " today")
			}
		}
		add(t, informer, cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { panics("add") },
			UpdateFunc: func(any, any) { panics("update") },
			DeleteFunc: func(any) { panics("delete") },
		})
		defer run(t, informer)()
		w.put(t, pod("a"), pod("a", on("n")))
		w.pods.Remove(object.Key{Namespace: "team-a", Name: "a"})
		synctest.Wait()
	})
}

// With ReallyCrash off, as in the tests of many programs, the handler rests for a second and gets the next event.
func TestAPanicOfAHandlerThatDoesNotCrash(t *testing.T) {
	defer func(before bool) { utilruntime.ReallyCrash = before }(utilruntime.ReallyCrash)
	utilruntime.ReallyCrash = false
	inWorld(t, func(t *testing.T, w *world) {
		w.put(t, pod("a"))
		informer := w.podInformer(t, clientgo.Options{})
		var others notes
		panicking := &notes{each: func(any) { panic("not today") }}
		add(t, informer, &others)
		var mu sync.Mutex
		var log strings.Builder
		logger := funcr.New(func(_, line string) {
			mu.Lock()
			defer mu.Unlock()
			log.WriteString(line)
		}, funcr.Options{})
		registration, err := informer.AddEventHandlerWithOptions(panicking, cache.HandlerOptions{Logger: &logger})
		if err != nil {
			t.Fatal(err)
		}
		defer run(t, informer)()
		w.put(t, pod("b"))
		want(t, "the handler that panics got", panicking.was(), "initial a")
		want(t, "the other handler got", others.was(), "initial a\nadd b")
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, "the handler that panics got", panicking.was(), "add b")
		if !registration.HasSynced() {
			t.Error("the handler that panics has not synced")
		}
		want(t, "the store has", names(informer.GetStore().List()), "a b")
		mu.Lock()
		defer mu.Unlock()
		if text := log.String(); strings.Count(text, "Observed a panic") != 2 || !strings.Contains(text, "not today") || !strings.Contains(text, "TestAPanicOfAHandlerThatDoesNotCrash") {
			t.Errorf("the log of the handler does not have its panics:\n%s", text)
		}
	})
}
