// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controller/podwriter"
	"github.com/setpoint-io/setpoint/internal/podstate"
)

// world is an API server with one Job and its Pods, a kubelet, and the controller. Each write of
// the controller may be its last one.
type world struct {
	job     *batchv1.Job
	pods    []*corev1.Pod
	now     time.Time
	options Options
	version int // of the last write
	made    int

	memory    *backoff // nil in a new process
	killAt    int      // the write after which the process is killed; 0 is none
	writes    int      // of this run
	meanwhile func()   // happens before each write of the controller

	listed map[types.UID]string // each UID that a status has listed, and in which list
	over   map[types.UID]bool   // those that are in the counters
	ended  map[types.UID]string // how each Pod that had the finalizer ended
	errs   []string
}

func newWorld(job *batchv1.Job) *world {
	job.UID = "job"
	w := &world{
		job: job, now: time.Unix(1_800_000_000, 0), options: Defaults(), meanwhile: func() {},
		listed: map[types.UID]string{}, over: map[types.UID]bool{}, ended: map[types.UID]string{},
	}
	w.options.Burst, w.options.MaxUncounted = 3, 3 // so that work is left for other runs
	return w
}

// killed is the panic of a process that is killed.
type killed struct{}

// write counts a write of the controller. The process may be killed before or after it.
func (w *world) write(do func()) {
	w.meanwhile()
	w.writes++
	if w.killAt == 2*w.writes-1 {
		panic(killed{})
	}
	w.version++
	do()
	if w.killAt == 2*w.writes {
		panic(killed{})
	}
}

func (w *world) fail(format string, args ...any) {
	w.errs = append(w.errs, fmt.Sprintf(format, args...))
}

// run is one run of the controller.
func (w *world) run() {
	w.writes = 0
	defer func() {
		if p := recover(); p != nil {
			if _, ok := p.(killed); !ok {
				panic(p)
			}
			w.memory = nil
		}
		w.collect()
	}()
	if finished(w.job) != nil {
		return
	}
	read := w.job.DeepCopy()
	var pods []*corev1.Pod
	for _, pod := range w.pods {
		pods = append(pods, pod.DeepCopy())
	}
	before := recovered(read, countedOf(read, pods))
	if w.memory != nil {
		before = *w.memory
	}
	p := decide(view{job: read, pods: pods, now: w.now, backoff: before, options: w.options})
	w.apply(p)
	p.account()
	if len(p.strip) > 0 {
		if !w.flush(read, p) {
			return
		}
		w.memory = &p.nextBackoff
	}
	for _, pod := range p.strip {
		w.write(func() { w.removeFinalizer(pod.UID) })
	}
	p.settle(p.strip)
	if w.flush(read, p) {
		w.memory = &p.nextBackoff
	}
}

// apply creates and deletes Pods.
func (w *world) apply(p *plan) {
	owner := podwriter.Owner{Object: w.job, Kind: jobs}
	if len(p.create) > 0 && len(p.remove)+len(p.stop) > 0 {
		w.fail("a run creates and deletes Pods")
	}
	for _, pod := range newPods(owner, w.job, p, "") {
		w.write(func() {
			w.made++
			pod.UID, pod.Name = types.UID(fmt.Sprintf("pod-%d", w.made)), fmt.Sprintf("%s%d", pod.GenerateName, w.made)
			pod.CreationTimestamp, pod.ResourceVersion = metav1.NewTime(w.now), fmt.Sprint(w.version)
			pod.Status.Phase = corev1.PodPending
			w.pods = append(w.pods, pod.DeepCopy())
		})
		p.created(1)
	}
	for _, pod := range p.remove {
		if tracked(pod) {
			conflict := false
			w.write(func() {
				live := w.find(pod.UID)
				if conflict = live != nil && live.ResourceVersion != pod.ResourceVersion; !conflict {
					w.removeFinalizer(pod.UID)
				}
			})
			if conflict {
				p.incomplete = true
				continue
			}
		}
		w.write(func() { w.delete(pod.UID) })
		p.deleted([]*corev1.Pod{pod})
		p.untracked([]*corev1.Pod{pod})
	}
	for _, pod := range p.stop {
		w.write(func() { w.delete(pod.UID) })
		p.deleted([]*corev1.Pod{pod})
	}
}

// flush writes the status. It reports whether the server takes it.
func (w *world) flush(read *batchv1.Job, p *plan) bool {
	ok := false
	w.write(func() {
		if ok = read.ResourceVersion == w.job.ResourceVersion; !ok {
			return
		}
		w.account(&p.status)
		w.job.Status = *p.status.DeepCopy()
		w.job.ResourceVersion = fmt.Sprint(w.version)
		read.ResourceVersion = w.job.ResourceVersion
	})
	return ok
}

// account checks a new status against the one before.
func (w *world) account(now *batchv1.JobStatus) {
	was := w.job.Status.UncountedTerminatedPods
	if was == nil {
		was = &batchv1.UncountedTerminatedPods{}
	}
	is := now.UncountedTerminatedPods
	for _, list := range []struct {
		name    string
		was, is []types.UID
		counted int32
	}{
		{"succeeded", was.Succeeded, is.Succeeded, now.Succeeded - w.job.Status.Succeeded},
		{"failed", was.Failed, is.Failed, now.Failed - w.job.Status.Failed},
	} {
		if len(list.is) > w.options.MaxUncounted {
			w.fail("%d Pods are listed as %s", len(list.is), list.name)
		}
		for _, uid := range list.is {
			if in, before := w.listed[uid]; before && (in != list.name || !slices.Contains(list.was, uid)) {
				w.fail("%s is listed as %s, and was as %s before", uid, list.name, in)
			}
			w.listed[uid] = list.name
		}
		left := int32(0)
		for _, uid := range list.was {
			if slices.Contains(list.is, uid) {
				continue
			}
			left++
			if live := w.find(uid); live != nil && tracked(live) || w.over[uid] {
				w.fail("%s is counted as %s and has the finalizer, or is counted again", uid, list.name)
			}
			w.over[uid] = true
		}
		if list.counted != left && (list.name == "failed" || !indexed(w.job)) {
			w.fail("%d more Pods are %s, and %d have left the list", list.counted, list.name, left)
		}
	}
	if c := find(now.Conditions, batchv1.JobComplete); c != nil && (now.Active > 0 || *now.Terminating > 0 || len(is.Succeeded)+len(is.Failed) > 0) {
		w.fail("the Job is complete with %+v", now)
	}
	if *now.Ready > now.Active {
		w.fail("%d are ready of %d", *now.Ready, now.Active)
	}
}

func (w *world) find(uid types.UID) *corev1.Pod {
	for _, pod := range w.pods {
		if pod.UID == uid {
			return pod
		}
	}
	return nil
}

// touch notes that a Pod has changed.
func (w *world) touch(pod *corev1.Pod) {
	w.version++
	pod.ResourceVersion = fmt.Sprint(w.version)
}

func (w *world) removeFinalizer(uid types.UID) {
	if pod := w.find(uid); pod != nil {
		pod.Finalizers = nil
		w.touch(pod)
	}
}

// delete begins to delete a Pod. One that has no node goes at once.
func (w *world) delete(uid types.UID) {
	if pod := w.find(uid); pod != nil && pod.DeletionTimestamp == nil {
		pod.DeletionTimestamp = new(metav1.NewTime(w.now))
		if pod.Status.Phase == corev1.PodPending {
			pod.DeletionGracePeriodSeconds = new(int64(0))
		} else {
			pod.DeletionGracePeriodSeconds = new(int64(30))
		}
		w.touch(pod)
	}
}

// collect removes Pods that are deleted and have neither a finalizer nor a container.
func (w *world) collect() {
	w.pods = slices.DeleteFunc(w.pods, func(pod *corev1.Pod) bool {
		gone := pod.DeletionTimestamp != nil && len(pod.Finalizers) == 0 && (podstate.Ended(pod) || *pod.DeletionGracePeriodSeconds == 0)
		return gone
	})
}

// end ends a Pod, as its kubelet does.
func (w *world) end(pod *corev1.Pod, code int32) {
	if podstate.Ended(pod) {
		return
	}
	endWith(pod, code, w.now)
	w.touch(pod)
	switch {
	case !tracked(pod):
	case pod.DeletionTimestamp != nil && code == 0:
		w.ended[pod.UID] = "succeeded late" // it may have been replaced
	default:
		w.ended[pod.UID] = strings.ToLower(string(pod.Status.Phase))
	}
}

func (w *world) active() (pods []*corev1.Pod) {
	for _, pod := range w.pods {
		if podstate.Active(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// succeeded returns how many Pods have succeeded while they had the finalizer.
func (w *world) succeeded() (n int) {
	for _, how := range w.ended {
		if how == "succeeded" {
			n++
		}
	}
	return n
}
