// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controlplane"
	"github.com/setpoint-io/setpoint/controlplane/nodes"
)

// patience is how long anything may take on a slow and busy machine. It is never
// waited for where all is well.
const patience = 60 * time.Second

// plane is the control plane that the tests of this package share, one after the
// other; starting one takes seconds.
var plane struct {
	sync.Mutex
	running *controlplane.ControlPlane
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if plane.running != nil {
		if err := plane.running.Stop(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// cluster is a test's view of the control plane: a namespace of its own.
type cluster struct {
	*testing.T
	*controlplane.ControlPlane
	client    kubernetes.Interface
	namespace string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	plane.Lock()
	defer plane.Unlock()
	if plane.running == nil && plane.err == nil {
		plane.running, plane.err = controlplane.Start(t.Context(), controlplane.Options{})
	}
	if plane.err != nil {
		t.Fatal(plane.err)
	}
	return join(t, plane.running)
}

// newFragileCluster has a control plane of its own, for tests that stop an API
// server: the scheduler needs up to half a minute to get over that, which other
// tests should not have to wait for.
func newFragileCluster(t *testing.T) *cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	own, err := controlplane.Start(t.Context(), controlplane.Options{DisableScheduler: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return join(t, own)
}

func join(t *testing.T, plane *controlplane.ControlPlane) *cluster {
	t.Helper()
	client, err := kubernetes.NewForConfig(plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, ControlPlane: plane, client: client}
	name := strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: name[:min(len(name), 50)] + "-"}}, metav1.CreateOptions{})
	c.check(err)
	c.namespace = namespace.Name
	_, err = client.CoreV1().ServiceAccounts(c.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	c.check(err)
	t.Cleanup(func() {
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
		c.check(client.CoreV1().Pods(c.namespace).DeleteCollection(context.WithoutCancel(t.Context()), now, metav1.ListOptions{}))
	})
	return c
}

func (c *cluster) check(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// simulate runs a simulation until stop is called or the test ends, and waits until
// it is ready. Nodes are freed of the taint that a controller would lift.
func (c *cluster) simulate(opts nodes.Options) (stop func()) {
	c.Helper()
	ready := make(chan struct{})
	opts.OnReady = func() { close(ready) }
	stop = c.begin(opts)
	select {
	case <-ready:
	case <-time.After(patience):
		c.Fatal("the simulated nodes are not ready")
	}
	for i := range opts.Nodes {
		_, err := c.client.CoreV1().Nodes().Patch(c.Context(), fmt.Sprintf("node-%d", i), types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{})
		c.check(err)
	}
	return stop
}

// begin runs a simulation and does not wait for it to be ready.
func (c *cluster) begin(opts nodes.Options) (stop func()) {
	c.Helper()
	opts.Config = c.AdminConfig()
	opts.Logger = slog.New(slog.NewTextHandler(c.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- nodes.Run(ctx, opts) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				c.Error(err)
			}
		case <-time.After(patience):
			c.Errorf("the simulation does not end; what runs:\n%s", stacks())
		}
	})
	c.Cleanup(stop)
	return stop
}

// pod returns a Pod that is bound to node-0 already.
func (c *cluster) pod(name string, annotations ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{NodeName: "node-0", Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
	}
	for pair := range slices.Chunk(annotations, 2) {
		pod.Annotations[pair[0]] = pair[1]
	}
	return pod
}

func (c *cluster) create(pod *corev1.Pod) *corev1.Pod {
	c.Helper()
	created, err := c.client.CoreV1().Pods(pod.Namespace).Create(c.Context(), pod, metav1.CreateOptions{})
	c.check(err)
	return created
}

// becomes waits until the Pod is as the condition says.
func (c *cluster) becomes(name, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	c.Helper()
	var pod *corev1.Pod
	c.eventually(func() (bool, string) {
		var err error
		if pod, err = c.client.CoreV1().Pods(c.namespace).Get(c.Context(), name, metav1.GetOptions{}); err != nil {
			return false, err.Error()
		}
		return is(pod), fmt.Sprintf("pod %s does not become %s; its status: %+v", name, what, pod.Status)
	})
	return pod
}

func (c *cluster) gone(name string) {
	c.Helper()
	c.eventually(func() (bool, string) {
		_, err := c.client.CoreV1().Pods(c.namespace).Get(c.Context(), name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), fmt.Sprintf("pod %s is still there (%v)", name, err)
	})
}

// eventually polls until the condition holds.
func (c *cluster) eventually(holds func() (ok bool, otherwise string)) {
	c.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		ok, otherwise := holds()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			c.Fatal(otherwise)
		}
	}
}

func ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func hasPhase(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Status.Phase == phase }
}

func waitsFor(reason string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == reason
	}
}

func stacks() string {
	buffer := make([]byte, 8<<20)
	return string(buffer[:runtime.Stack(buffer, true)])
}
