// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// processWide is how many goroutines Kubernetes' packages start once a process
// and never end, such as klog's flushing.
const processWide = 4

const leakChild = "SETPOINT_TEST_LEAK"

// TestStopLeavesNothingBehind runs in a process of its own, so that no other
// test's goroutines are counted.
func TestStopLeavesNothingBehind(t *testing.T) {
	if os.Getenv(leakChild) == "" {
		tmp := t.TempDir()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v") //nolint:gosec // this very test
		cmd.Env = append(os.Environ(), leakChild+"=1", "TMPDIR="+tmp)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "ready after") {
				t.Log(strings.TrimSpace(line))
			}
		}
		left, err := os.ReadDir(tmp)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range left {
			t.Errorf("%s was left in the temporary directory", e.Name())
		}
		return
	}

	before := runtime.NumGoroutine() + processWide
	for range 2 {
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		cp, err := Start(ctx, Options{APIServers: 2})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("ready after %v with %d goroutines", time.Since(began).Round(time.Millisecond), runtime.NumGoroutine())
		// A client that watches must not keep the server from stopping.
		c := client(t, cp.AdminConfig())
		if _, err := c.CoreV1().Pods("").Watch(ctx, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := cp.Stop(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if err := cp.Err(); !errors.Is(err, ErrStopped) {
			t.Errorf("after Stop, Err is %v, want ErrStopped", err)
		}
	}
	end := time.Now().Add(deadline)
	for runtime.NumGoroutine() > before {
		if time.Now().After(end) {
			var b strings.Builder
			if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
				t.Fatal(err)
			}
			t.Fatalf("%d goroutines, want at most %d:\n%s", runtime.NumGoroutine(), before, &b)
		}
		// client-go ends the goroutines that reload the certificate for kubelets when the
		// transport is collected (transport.tlsTransportCache).
		runtime.GC()
		time.Sleep(50 * time.Millisecond)
	}
}

func TestDataDirectoryKeepsObjectsAndCredentials(t *testing.T) {
	// So long that etcd's socket does not fit into it.
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", maxSocketPath/4))
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)

	cp := startForTest(t, Options{DataDir: dir, DisableScheduler: true})
	if _, err := client(t, cp.AdminConfig()).CoreV1().ConfigMaps("default").Create(t.Context(), configMap("kept"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	earlier := cp.AdminConfig()
	stopForTest(t, cp)
	if _, err := os.Stat(cp.KubeconfigFile()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a kubeconfig without a server is left: %v", err)
	}

	var events []Event
	cp = startForTest(t, Options{DataDir: dir, DisableScheduler: true, Progress: func(e Event) { events = append(events, e) }})
	// The credentials of the earlier start, at the address of this one.
	earlier.Host = cp.AdminConfig().Host
	for name, config := range map[string]*rest.Config{"earlier": earlier, "new": cp.AdminConfig()} {
		if _, err := client(t, config).CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
			t.Errorf("with the %s credentials: %v", name, err)
		}
	}
	var steps []string
	for _, e := range events {
		steps = append(steps, e.Component+" "+string(e.State))
	}
	if got, want := strings.Join(steps, ", "), "etcd starting, etcd ready, kube-apiserver starting, kube-apiserver ready"; got != want {
		t.Errorf("progress was %q, want %q", got, want)
	}
	stopForTest(t, cp)
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
}

// startToDie starts a control plane for a test that makes a component of it die.
// Its Stop must come back and remove the files, but need not end everything.
func startToDie(t *testing.T) *ControlPlane {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cp, err := Start(ctx, Options{DisableScheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), deadline)
		defer cancel()
		if err := cp.Stop(ctx); err != nil {
			t.Log("stopping what was left:", err)
		}
		if ctx.Err() != nil {
			t.Error("Stop waited for its context to end")
		}
		if _, err := os.Stat(cp.DataDir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the temporary directory is left: %v", err)
		}
	})
	return cp
}

func TestDeathOfEtcdIsTold(t *testing.T) {
	cp := startToDie(t)
	if err := cp.Err(); err != nil {
		t.Fatalf("Err of a running control plane: %v", err)
	}
	cp.etcd.server.Server.HardStop()
	select {
	case <-cp.Done():
	case <-time.After(deadline):
		t.Fatal("Done was not closed")
	}
	if err := cp.Err(); err == nil || !strings.Contains(err.Error(), "etcd ended") {
		t.Errorf("Err is %v, want that etcd ended", err)
	}
}

func TestCrashOfEtcdOnAFullDiskIsTold(t *testing.T) {
	cp := startToDie(t)
	// What etcd logs, from goroutines of its own, when the disk fills up.
	logger := cp.etcd.server.GetLogger()
	go logger.Fatal("failed to commit tx", zap.Error(&os.PathError{Op: "write", Path: "db", Err: syscall.ENOSPC}))
	select {
	case <-cp.Done():
	case <-time.After(deadline):
		t.Fatal("Done was not closed")
	}
	checkError(t, cp.Err(), ErrDiskFull, "etcd ended", "write db", "free some space")
}

func TestStartThatIsCancelledLeavesNothingBehind(t *testing.T) {
	for _, at := range []string{"etcd", "kube-apiserver", "kube-scheduler"} {
		t.Run(at, func(t *testing.T) {
			tmp := t.TempDir()
			t.Setenv("TMPDIR", tmp)
			cause := errors.New("changed my mind")
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			_, err := Start(ctx, Options{Progress: func(e Event) {
				if e.Component == at && e.State == Starting {
					cancel(cause)
				}
			}})
			if !errors.Is(err, cause) {
				t.Errorf("Start returned %v, want the cause of the cancellation", err)
			}
			if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
				t.Errorf("left in the temporary directory: %v, %v", left, err)
			}
		})
	}
}

func TestStopAtOnceAndTwice(t *testing.T) {
	cp := startForTest(t, Options{DisableScheduler: true})
	var stops sync.WaitGroup
	for range 2 {
		stops.Go(func() { stopForTest(t, cp) })
	}
	stops.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := cp.StartServer(ctx, 0); !errors.Is(err, ErrStopped) {
		t.Errorf("StartServer after Stop: %v, want ErrStopped", err)
	}
}

// hang sends a request that the server cannot finish: its body never ends.
func hang(t *testing.T, config *rest.Config) {
	t.Helper()
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	body, neverWritten := io.Pipe()
	t.Cleanup(func() {
		_ = neverWritten.Close()
		h.CloseIdleConnections()
	})
	connected := make(chan struct{})
	ctx := httptrace.WithClientTrace(context.WithoutCancel(t.Context()), &httptrace.ClientTrace{WroteHeaders: func() { close(connected) }})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, config.Host+"/api/v1/namespaces/default/configmaps", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	go func() {
		if resp, err := h.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	<-connected
}

func TestStopCutsRequestsThatHangWhenItsContextEnds(t *testing.T) {
	cp := startForTest(t, Options{DisableScheduler: true})
	hang(t, cp.AdminConfig())
	// Long enough for the server to take the request up, and much shorter than
	// the minute that it would wait for.
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := cp.Stop(ctx); err != nil {
		t.Error(err)
	}
	if ctx.Err() == nil {
		t.Error("the request did not hang: Stop had nothing to cut")
	}
	if _, err := os.Stat(cp.DataDir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary directory is left: %v", err)
	}
}
