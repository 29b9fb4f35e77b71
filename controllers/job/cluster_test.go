// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
)

// shared has no nodes: the tests are the kubelets.
var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// submit creates a Job on a real server.
func submit(t *testing.T, in, name string, change ...func(*batchv1.Job)) object.Key {
	t.Helper()
	job := newJob(name, change...)
	job.Namespace, job.Spec.Selector, job.Spec.Template.Labels = in, nil, nil // the server makes them
	made, err := client.For[*batchv1.Job](shared.Get(t).Client).Create(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	return object.KeyOf(made)
}

// finish writes the status of a Pod that has ended. A Pod that is gone stays gone.
func finish(t *testing.T, pod *corev1.Pod, code int32) {
	t.Helper()
	ended := pod.DeepCopy()
	endWith(ended, code, time.Now())
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": ended.Status})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.For[*corev1.Pod](shared.Get(t).Client).Sub("status").Patch(t.Context(), object.KeyOf(pod), patch)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && t.Context().Err() == nil {
		t.Errorf("writing the status of Pod %s: %v", pod.Name, err)
	}
}

// TestClusterJobsEndAsTheirPoliciesSay runs Jobs on a real server, which checks each status.
func TestClusterJobsEndAsTheirPoliciesSay(t *testing.T) {
	cluster := shared.Get(t)
	p := managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(New, Defaults()))
	never := func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(0)) }
	perIndex := func(limit int32) func(*batchv1.Job) {
		return func(j *batchv1.Job) { j.Spec.BackoffLimit, j.Spec.BackoffLimitPerIndex = nil, &limit }
	}
	policy := func(action batchv1.PodFailurePolicyAction) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Spec.PodReplacementPolicy = new(batchv1.Failed)
			j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}},
			}}}
		}
	}
	const runs = -1 // the code of a Pod that does not end
	odd := func(pod *corev1.Pod) int32 { return int32(indexOf(pod) % 2 * 42) }
	for _, test := range []struct {
		name      string
		spec      []func(*batchv1.Job)
		code      func(*corev1.Pod) int32
		ends      batchv1.JobConditionType
		reason    string
		succeeded int32
		failed    int32
		indexes   string
	}{
		{"completions", []func(*batchv1.Job){wants(5, 2)}, func(*corev1.Pod) int32 { return 0 }, batchv1.JobComplete, batchv1.JobReasonCompletionsReached, 5, 0, ""},
		{"indexes", []func(*batchv1.Job){wants(12, 6), isIndexed}, func(*corev1.Pod) int32 { return 0 }, batchv1.JobComplete, batchv1.JobReasonCompletionsReached, 12, 0, "0-11"},
		{"none", []func(*batchv1.Job){wants(0, 2)}, func(*corev1.Pod) int32 { return 0 }, batchv1.JobComplete, batchv1.JobReasonCompletionsReached, 0, 0, ""},
		{"limit", []func(*batchv1.Job){wants(3, 3), never}, func(*corev1.Pod) int32 { return 1 }, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, 0, 3, ""},
		{"running-pods-fail", []func(*batchv1.Job){wants(4, 4), never, isIndexed}, func(pod *corev1.Pod) int32 {
			if indexOf(pod) == 2 {
				return 1
			}
			return runs
		}, batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, 0, 4, ""},
		{"deadline", []func(*batchv1.Job){wants(2, 2), func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = new(int64(1)) }},
			func(*corev1.Pod) int32 { return runs }, batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, 0, 2, ""},
		{"failed-indexes", []func(*batchv1.Job){wants(6, 6), isIndexed, perIndex(0)}, odd, batchv1.JobFailed, batchv1.JobReasonFailedIndexes, 3, 3, "0,2,4"},
		{"too-many-failed-indexes", []func(*batchv1.Job){wants(6, 6), isIndexed, perIndex(0), func(j *batchv1.Job) { j.Spec.MaxFailedIndexes = new(int32(1)) }},
			odd, batchv1.JobFailed, batchv1.JobReasonMaxFailedIndexesExceeded, -1, -1, ""},
		{"fail-job", []func(*batchv1.Job){wants(4, 4), isIndexed, policy(batchv1.PodFailurePolicyActionFailJob)}, odd, batchv1.JobFailed, batchv1.JobReasonPodFailurePolicy, -1, -1, ""},
		{"fail-index", []func(*batchv1.Job){wants(4, 4), isIndexed, perIndex(5), policy(batchv1.PodFailurePolicyActionFailIndex)}, odd,
			batchv1.JobFailed, batchv1.JobReasonFailedIndexes, 2, 2, "0,2"},
		{"success-policy", []func(*batchv1.Job){wants(6, 6), isIndexed, func(j *batchv1.Job) {
			j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("0-1")}}}
		}}, func(pod *corev1.Pod) int32 {
			if indexOf(pod) < 2 {
				return 0
			}
			return runs
		}, batchv1.JobComplete, batchv1.JobReasonSuccessPolicy, 2, 0, "0,1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			in := cluster.Namespace(t)
			runKubelet(t, in, func(pod *corev1.Pod) (int32, bool) {
				code := test.code(pod)
				return code, code != runs
			})
			key := submit(t, in, test.name, test.spec...)
			job := controlplanetest.Await(t, p, key, "the Job has ended", func(j *batchv1.Job) bool { return finished(j) != nil })
			end := finished(job)
			if end.Type != test.ends || end.Reason != test.reason {
				t.Errorf("it ended with %s, %s: %s; want %s, %s", end.Type, end.Reason, end.Message, test.ends, test.reason)
			}
			if test.succeeded >= 0 && (job.Status.Succeeded != test.succeeded || job.Status.Failed != test.failed || job.Status.CompletedIndexes != test.indexes) {
				t.Errorf("%d have succeeded, %d have failed, indexes %q; want %d, %d, %q",
					job.Status.Succeeded, job.Status.Failed, job.Status.CompletedIndexes, test.succeeded, test.failed, test.indexes)
			}
			controlplanetest.Eventually(t, "no Pod has the finalizer", func() bool {
				pods, _, err := client.For[*corev1.Pod](cluster.Client).List(t.Context(), client.Selection{Namespace: in})
				return err == nil && !slices.ContainsFunc(pods, tracked)
			})
		})
	}
}

// runKubelet ends the Pods of a namespace with the codes that code returns, and says that the
// containers of Pods that are deleted have ended.
func runKubelet(t *testing.T, in string, code func(*corev1.Pod) (int32, bool)) {
	t.Helper()
	eyes := managertest.Run(t, shared.Get(t).Config)
	informer := cache.Informer[*corev1.Pod](eyes, cache.InNamespace(in))
	_, err := informer.AddHandler(func(e cache.Event[*corev1.Pod]) {
		pod, err := e.Item().Object()
		if err != nil || !e.New.Exists() || podstate.Ended(pod) {
			return
		}
		if n, ends := code(pod); ends {
			finish(t, pod, n)
		}
	}, cache.HandlerOptions{Name: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
}

// ledger checks each version of a Job's status against the one before.
type ledger struct {
	t  *testing.T
	mu sync.Mutex
	// last is the status before.
	last batchv1.JobStatus
	// listed are the UIDs that were listed as uncounted, and over those that are counted.
	listed, over map[types.UID]bool
	versions     int
}

func watchLedger(t *testing.T, p cache.Provider, key object.Key) *ledger {
	t.Helper()
	l := &ledger{t: t, listed: map[types.UID]bool{}, over: map[types.UID]bool{}}
	informer := cache.Informer[*batchv1.Job](p, cache.InNamespace(key.Namespace))
	_, err := informer.AddHandler(func(e cache.Event[*batchv1.Job]) {
		if job, err := e.Item().Object(); err == nil && e.Key() == key {
			l.check(&job.Status)
		}
	}, cache.HandlerOptions{Name: t.Name(), EveryStep: true})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *ledger) check(now *batchv1.JobStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions++
	was, is := uncountedOf(&l.last), uncountedOf(now)
	left := int32(0)
	for _, uid := range was {
		if !slices.Contains(is, uid) {
			if l.over[uid] {
				l.t.Errorf("Pod %s is counted twice", uid)
			}
			l.over[uid] = true
			left++
		}
	}
	for _, uid := range is {
		if l.over[uid] {
			l.t.Errorf("Pod %s is listed again", uid)
		}
		l.listed[uid] = true
	}
	indexes := now.CompletedIndexes != ""
	if more := now.Succeeded + now.Failed - l.last.Succeeded - l.last.Failed; more != left && !indexes {
		l.t.Errorf("the counters grow by %d, and %d Pods leave the lists: from %+v to %+v", more, left, l.last, *now)
	}
	if indexes && int(now.Succeeded) != parseIntervals(now.CompletedIndexes, 1000).size() {
		l.t.Errorf("%d have succeeded, and the indexes are %s", now.Succeeded, now.CompletedIndexes)
	}
	l.last = *now
}

func uncountedOf(status *batchv1.JobStatus) []types.UID {
	if status.UncountedTerminatedPods == nil {
		return nil
	}
	return slices.Concat(status.UncountedTerminatedPods.Succeeded, status.UncountedTerminatedPods.Failed)
}

// TestClusterEachPodIsCountedOnceByProcessesThatAreKilled runs two Jobs to their ends. The
// controller is a process of its own that is killed, by SIGKILL, after one to four of its writes.
// Meanwhile Pods succeed, fail and are deleted, and the Jobs are suspended and scaled.
func TestClusterEachPodIsCountedOnceByProcessesThatAreKilled(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	cluster := shared.Get(t)
	in := cluster.Namespace(t)
	alone := managertest.NewAlone(t, cluster, Name, Rights())
	eyes := managertest.Run(t, cluster.Config)
	keys := []object.Key{
		submit(t, in, "plain", wants(8, 3), func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(1000)) }),
		submit(t, in, "indexed", wants(8, 3), isIndexed, func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(1000)) }),
	}
	h := &history{t: t, random: random, in: in, pods: client.For[*corev1.Pod](cluster.Client), ended: map[types.UID]bool{}}
	ledgers := []*ledger{watchLedger(t, eyes, keys[0]), watchLedger(t, eyes, keys[1])}
	lives := 0
	controlplanetest.Eventually(t, "both Jobs are complete", func() bool {
		if lives == 0 || isClosed(alone.Ended()) {
			alone.Start(1 + lives%4)
			lives++
		}
		done := true
		for _, key := range keys {
			job, err := client.For[*batchv1.Job](cluster.Client).Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if finished(job) == nil {
				done = false
				h.happen(job)
			}
		}
		return done
	})
	if !isClosed(alone.Ended()) {
		alone.Kill()
	}
	job := controlplanetest.Await(t, eyes, keys[0], "the Job is complete", func(j *batchv1.Job) bool { return finished(j) != nil })
	l := ledgers[0]
	l.mu.Lock()
	defer l.mu.Unlock()
	for uid := range h.ended {
		if !l.listed[uid] {
			t.Errorf("Pod %s has ended and was never counted", uid)
		}
	}
	if n := len(l.over); int(job.Status.Succeeded+job.Status.Failed) != n {
		t.Errorf("%d Pods are counted, and the status is %+v", n, job.Status)
	}
	t.Logf("%d processes made %d writes; %d versions; %d succeeded, %d failed", lives, len(alone.Writes()), l.versions, job.Status.Succeeded, job.Status.Failed)
	for _, write := range alone.Writes() {
		if write.Idle || write.Blind {
			t.Errorf("%+v changes nothing, or does not say of which UID", write)
		}
	}
	if log := alone.Log(); strings.Contains(log, "forbidden") || strings.Contains(log, "level=ERROR") {
		t.Errorf("it lacks something: %s", log)
	}
}

func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// history is what happens to the Pods of Jobs.
type history struct {
	t      *testing.T
	random *rand.Rand
	in     string
	pods   client.Typed[*corev1.Pod]
	ended  map[types.UID]bool // Pods of the Job without indexes that ended while nothing deleted them
}

// happen changes one thing. A failure is followed by a success, so that no Job backs off.
func (h *history) happen(job *batchv1.Job) {
	h.t.Helper()
	list, _, err := h.pods.List(h.t.Context(), client.Selection{Namespace: h.in})
	if err != nil {
		h.t.Fatal(err)
	}
	var active []*corev1.Pod
	for _, pod := range list {
		if metav1.IsControlledBy(pod, job) && podstate.Active(pod) {
			active = append(active, pod)
		}
	}
	switch n := h.random.IntN(10); {
	case n == 0 && len(active) > 1:
		h.end(job, active[0], 1)
		h.end(job, active[1], 0)
	case n == 1 && len(active) > 1:
		if err := h.pods.Delete(h.t.Context(), object.KeyOf(active[0]), client.IfUID(active[0].UID)); err != nil && !apierrors.IsNotFound(err) {
			h.t.Fatal(err)
		}
		h.end(job, active[1], 0)
	case n == 2:
		h.edit(job, map[string]any{"suspend": true})
	case n == 3:
		h.edit(job, map[string]any{"parallelism": 1 + h.random.IntN(4)})
	case job.Spec.Suspend != nil && *job.Spec.Suspend:
		h.edit(job, map[string]any{"suspend": false})
	case n > 5 && len(active) > 0:
		h.end(job, active[0], 0)
	}
}

// end ends a Pod, unless it has changed: the controller may be deleting it.
func (h *history) end(job *batchv1.Job, pod *corev1.Pod, code int32) {
	h.t.Helper()
	ended := pod.DeepCopy()
	endWith(ended, code, time.Now())
	_, err := h.pods.UpdateStatus(h.t.Context(), ended)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
	case err != nil:
		h.t.Fatal(err)
	case tracked(pod) && !indexed(job):
		h.ended[pod.UID] = true
	}
}

func (h *history) edit(job *batchv1.Job, spec map[string]any) {
	h.t.Helper()
	patch, err := client.MergePatch(map[string]any{"spec": spec})
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := client.For[*batchv1.Job](shared.Get(h.t).Client).Patch(h.t.Context(), object.KeyOf(job), patch); err != nil {
		h.t.Fatal(fmt.Errorf("editing Job %s: %w", job.Name, err))
	}
}
