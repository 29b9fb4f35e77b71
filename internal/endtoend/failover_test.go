// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

// sentWrite is a write that arrived from a manager, but for those of its lease.
type sentWrite struct {
	by   *candidate
	at   time.Time
	what string
}

// ledger has the writes of all managers of a test in the order in which they arrived.
type ledger struct {
	mu     sync.Mutex
	writes []sentWrite
}

func (l *ledger) add(w sentWrite) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = append(l.writes, w)
}

// since returns the writes of one manager that arrived after a moment.
func (l *ledger) since(by *candidate, at time.Time) []sentWrite {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []sentWrite
	for _, w := range l.writes {
		if w.by == by && w.at.After(at) {
			all = append(all, w)
		}
	}
	return all
}

// candidate is a "setpoint manager" that takes part in an election, and whose way to the
// server leads past a ledger.
type candidate struct {
	name  string
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // after ended
}

// elect starts a manager that holds, or waits for, the lease of a namespace.
func elect(t *testing.T, cluster *controlplanetest.Cluster, l *ledger, namespace, name string) *candidate {
	t.Helper()
	binary, err := controlplanetest.Binary("setpoint")
	if err != nil {
		t.Fatal(err)
	}
	c := &candidate{name: name, ended: make(chan struct{})}
	target, err := url.Parse(cluster.Config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			if r.In.Method != http.MethodGet && !strings.Contains(r.In.URL.Path, "/leases") {
				l.add(sentWrite{by: c, at: time.Now(), what: r.In.Method + " " + r.In.URL.Path})
			}
			r.SetURL(target)
		},
		Transport: transport, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // the manager went
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: %q}}]\n", server.URL)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.cmd = exec.Command(binary, "manager", "--kubeconfig", kubeconfig, "--log-format", "text", "--secure-port", "0",
		"--controllers", "replicaset", "--leader-elect-resource-namespace", namespace, "--leader-elect-resource-name", "test")
	c.cmd.Stderr = t.Output()
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill() // an error means that it has ended
		<-c.ended
	})
	return c
}

func (c *candidate) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// keepBusy scales ReplicaSets up and down until the test ends, so that who leads has
// something to write all the time, but for as long as the lock is held that it returns.
func keepBusy(t *testing.T, cluster *controlplanetest.Cluster, namespace string) *sync.Mutex {
	t.Helper()
	var calm sync.Mutex
	const sets = 10
	all := client.For[*appsv1.ReplicaSet](cluster.Client)
	labels := func(i int) map[string]string { return map[string]string{"set": fmt.Sprint(i)} }
	for i := range sets {
		one := int32(1)
		if _, err := all.Create(t.Context(), &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("set-", i)},
			Spec: appsv1.ReplicaSetSpec{
				Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels(i)},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels(i)},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				},
			},
		}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	var task sync.WaitGroup
	task.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			patch, err := client.MergePatch(map[string]any{"spec": map[string]any{"replicas": 1 + n/sets%2}})
			if err == nil {
				calm.Lock()
				_, err = all.Patch(ctx, object.Key{Namespace: namespace, Name: fmt.Sprint("set-", n%sets)}, patch)
				calm.Unlock()
			}
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
	t.Cleanup(func() { stop(); task.Wait() })
	return &calm
}

// until waits for something.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestOfTwoManagersOneWritesAndTheOtherFollowsWhateverBecomesOfIt(t *testing.T) {
	cluster := onShared(t)
	for _, test := range []struct {
		name string
		end  func(t *testing.T, leader, other *candidate, l *ledger, calm *sync.Mutex)
	}{
		{"asked to end", func(t *testing.T, leader, _ *candidate, _ *ledger, _ *sync.Mutex) {
			leader.signal(t, syscall.SIGTERM)
			<-leader.ended
			if leader.err != nil {
				t.Errorf("it ended with %v", leader.err)
			}
		}},
		{"killed", func(t *testing.T, leader, _ *candidate, _ *ledger, _ *sync.Mutex) { leader.signal(t, syscall.SIGKILL) }},
		{"stopped and continued", func(t *testing.T, leader, other *candidate, l *ledger, calm *sync.Mutex) {
			// A write that is between its last question and the kernel in that moment is
			// sent when the process goes on, as package lease says: there must be none.
			calm.Lock()
			goOn := sync.OnceFunc(calm.Unlock)
			defer goOn() // if it fails before: who is busy is waited for
			until(t, "the leader to come to rest", func() bool { return len(l.since(leader, time.Now().Add(-time.Second))) == 0 })
			leader.signal(t, syscall.SIGSTOP)
			stopped := time.Now()
			goOn()
			until(t, "the other one to write", func() bool { return len(l.since(other, stopped)) > 0 })
			leader.signal(t, syscall.SIGCONT)
			<-leader.ended // it notices, and ends by itself
			if leader.err == nil {
				t.Error("it ended as if nothing had happened")
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			namespace := cluster.Namespace(t)
			l := &ledger{}
			leader := elect(t, cluster, l, namespace, "first")
			until(t, "the first one to lead", func() bool {
				held, err := client.For[*coordinationv1.Lease](cluster.Client).Get(t.Context(), object.Key{Namespace: namespace, Name: "test"})
				return err == nil && *held.Spec.HolderIdentity != ""
			})
			other := elect(t, cluster, l, namespace, "second")
			calm := keepBusy(t, cluster, namespace)
			began := time.Now()
			until(t, "the leader to be at work", func() bool { return len(l.since(leader, began)) > 50 })
			// The standby has told that it stands by when it has asked for the lease
			// for the first time; its informers need some moments more.
			time.Sleep(2 * time.Second)
			if n := len(l.since(other, began)); n > 0 {
				t.Fatalf("the standby made %d writes", n)
			}

			at := time.Now()
			test.end(t, leader, other, l, calm)
			until(t, "the other one to be at work", func() bool { return len(l.since(other, at)) > 50 })
			first := l.since(other, at)[0]
			last := at
			for _, w := range l.since(leader, at) {
				last = w.at
			}
			t.Logf("%s: the last write of the old leader after %s, the first one of the new one after %s", test.name,
				last.Sub(at).Round(time.Millisecond), first.at.Sub(at).Round(time.Millisecond))
			if late := l.since(leader, first.at); len(late) > 0 {
				t.Errorf("the old leader made %d writes after the first one of the new: %s", len(late), late[0].what)
			}
		})
	}
}
