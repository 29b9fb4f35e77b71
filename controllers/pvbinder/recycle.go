// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pvbinder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/volumes"
	"github.com/setpoint-io/setpoint/object"
)

// Recycler says how volumes of a plugin are made empty, so that another claim can have them: by a
// Pod that deletes the files.
type Recycler struct {
	// Template is a file with the Pod, in YAML or JSON, whose first volume is replaced. Empty is
	// upstream's Pod.
	Template string

	// Minimum is for how long the Pod may run at least, in seconds, and PerGi for how long for
	// each Gi of the volume.
	Minimum, PerGi int

	pod *corev1.Pod // of Template
}

// What upstream calls the Pod, where it runs, and what it runs.
// Source: k8s.io/kubernetes/pkg/volume, NewPersistentVolumeRecyclerPodTemplate.
const (
	recyclerPrefix    = "recycler-for-"
	recyclerNamespace = metav1.NamespaceDefault
	recyclerImage     = "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6"
	recyclerScript    = `test -e /scrub && find /scrub -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1`
)

// recyclesAnnotation is on a recycler Pod, and has the UIDs of the volume and of the claim that had
// it, so that a Pod of an earlier release can be distinguished from one of this release.
const recyclesAnnotation = "setpoint.io/recycles"

// How long a volume waits after a recycler Pod that failed.
// Source: k8s.io/kubernetes/pkg/util/goroutinemap/exponentialbackoff.
const (
	firstRecycleWait = 500 * time.Millisecond
	longRecycleWait  = 2*time.Minute + 2*time.Second

	// recycleMemory is for how long a volume whose Pods have failed is remembered, which may be gone.
	recycleMemory = time.Hour
)

// load reads the template.
func (r *Recycler) load() error {
	if r.Template == "" {
		r.pod = scrubber()
		return nil
	}
	raw, err := os.ReadFile(r.Template)
	if err != nil {
		return fmt.Errorf("reading the template of the recycler Pod: %w", err)
	}
	r.pod = new(corev1.Pod)
	if err := yaml.UnmarshalStrict(raw, r.pod); err != nil {
		return fmt.Errorf("reading the template of the recycler Pod in %s: %w", r.Template, err)
	}
	if len(r.pod.Spec.Volumes) == 0 {
		return fmt.Errorf("the template of the recycler Pod in %s has no volumes: the first one is replaced by the volume to recycle", r.Template)
	}
	return nil
}

// scrubber returns upstream's Pod.
func scrubber() *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Volumes:       []corev1.Volume{{Name: "vol"}},
		Containers: []corev1.Container{{
			Name: "pv-recycler", Image: recyclerImage,
			Command: []string{"/bin/sh"}, Args: []string{"-c", recyclerScript},
			VolumeMounts: []corev1.VolumeMount{{Name: "vol", MountPath: "/scrub"}},
		}},
	}}
}

// podFor returns the Pod that empties a volume.
func (r *Recycler) podFor(volume *corev1.PersistentVolume) *corev1.Pod {
	pod := r.pod.DeepCopy()
	pod.Name, pod.GenerateName = recyclerPrefix+volume.Name, ""
	if pod.Namespace == "" {
		pod.Namespace = recyclerNamespace
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[recyclesAnnotation] = releaseOf(volume)
	const gi = 1 << 30
	pod.Spec.ActiveDeadlineSeconds = new(max(int64(r.Minimum), size(volume.Spec.Capacity)/gi*int64(r.PerGi)))
	pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: volume.Spec.HostPath, NFS: volume.Spec.NFS}
	return pod
}

// releaseOf names one release of a volume.
func releaseOf(volume *corev1.PersistentVolume) string {
	return string(volume.UID) + "/" + string(volume.Spec.ClaimRef.UID)
}

// volumeOfRecycler adds the volume of a recycler Pod.
func (b *binder) volumeOfRecycler(item cache.Item[*corev1.Pod], add func(object.Key)) {
	if name, ok := strings.CutPrefix(item.Key().Name, recyclerPrefix); ok {
		add(object.Key{Name: name})
	}
}

// recycle takes the next step of emptying a volume.
// Source: k8s.io/kubernetes/pkg/controller/volume/persistentvolume, recycleVolumeOperation.
func (b *binder) recycle(ctx context.Context, volume *corev1.PersistentVolume) (controller.Result, error) {
	recycler := b.recyclerOf(volume)
	if recycler == nil {
		controller.Because(ctx, reason(codeNoRecycler, "the claim is gone, and no plugin can empty the volume", "an administrator deletes the volume, or changes its reclaim policy"))
		return controller.Result{}, b.fail(ctx, volume, reasonFailedRecycle, "No recycler plugin found for the volume!")
	}
	users, err := b.usersOf(volume)
	if err != nil {
		return controller.Result{}, err
	}
	if len(users) > 0 {
		controller.Because(ctx, inUse(users))
		b.recorder.Normal(volume, reasonFailedRecycle, actionReclaim, "Volume is used by pods: %s", strings.Join(users, ","))
		return controller.Result{After: b.SyncPeriod}, nil
	}
	wanted := recycler.podFor(volume)
	pod, err := b.pods.Get(object.KeyOf(wanted))
	switch {
	case apierrors.IsNotFound(err):
		return b.startRecycler(ctx, volume, wanted)
	case err != nil:
		return controller.Result{}, err
	case pod.Annotations[recyclesAnnotation] != wanted.Annotations[recyclesAnnotation]:
		return controller.Result{}, b.removeRecycler(ctx, pod) // its end is an event
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return controller.Result{}, b.recycled(ctx, volume, pod)
	case corev1.PodFailed:
		return b.recyclerFailed(ctx, volume, pod)
	case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
	}
	controller.Because(ctx, reason(codeRecycler, "the claim is gone, and the Pod {pod} empties the volume", "the Pod ends", "pod", object.KeyOf(pod)))
	return controller.Result{}, nil
}

// recyclerOf returns the recycler of the plugin of a volume, or nil.
func (b *binder) recyclerOf(volume *corev1.PersistentVolume) *Recycler {
	switch volumes.PluginOf(volume) {
	case volumes.HostPathPlugin:
		return &b.RecycleHostPath
	case volumes.NFSPlugin:
		return &b.RecycleNFS
	}
	return nil
}

// startRecycler creates the Pod, unless the last one has failed just now.
func (b *binder) startRecycler(ctx context.Context, volume *corev1.PersistentVolume, pod *corev1.Pod) (controller.Result, error) {
	if last, ok := b.recycles.Load(volume.UID); ok {
		if wait := last.(backoff).next.Sub(b.now()); wait > 0 {
			controller.Because(ctx, last.(backoff).reason())
			return controller.Result{After: wait}, nil
		}
	}
	volume, err := b.stillReleased(ctx, volume)
	if err != nil || volume == nil {
		return controller.Result{}, err
	}
	if _, err = b.pods.Create(ctx, pod); apierrors.IsAlreadyExists(err) {
		return controller.Result{Again: true}, nil // the cache is going to have it
	}
	if err != nil {
		return controller.Result{}, fmt.Errorf("creating the recycler Pod: %w", err)
	}
	b.recorder.Normal(volume, reasonRecyclerPod, actionReclaim, "Recycler pod: Created pod %s", object.KeyOf(pod))
	return controller.Result{}, nil
}

// backoff is how long the next recycler Pod of a volume waits.
type backoff struct {
	next time.Time
	wait time.Duration
}

// reason says that a volume waits for its next recycler Pod.
func (b backoff) reason() controller.Reason {
	return reason(codeRecyclerFailed, "the claim is gone, the Pod that empties the volume has failed, and the next one starts at {time}", "the time comes",
		"time", b.next.Format(time.RFC3339))
}

// recyclerFailed marks the volume as Failed and removes the Pod. The next Pod starts after a while.
func (b *binder) recyclerFailed(ctx context.Context, volume *corev1.PersistentVolume, pod *corev1.Pod) (controller.Result, error) {
	wait := firstRecycleWait
	if last, ok := b.recycles.Load(volume.UID); ok {
		wait = min(2*last.(backoff).wait, longRecycleWait)
	}
	b.forgetRecycles()
	next := backoff{next: b.now().Add(wait), wait: wait}
	b.recycles.Store(volume.UID, next)
	controller.Because(ctx, next.reason())
	message := pod.Status.Message
	if message == "" {
		message = "pod failed, pod.Status.Message unknown"
	}
	err := b.fail(ctx, volume, reasonFailedRecycle, "Recycle failed: failed to recycle volume: "+message)
	return controller.Result{After: wait}, errors.Join(err, b.removeRecycler(ctx, pod))
}

// forgetRecycles forgets the volumes whose Pods have not failed for long: they may be gone.
func (b *binder) forgetRecycles() {
	b.recycles.Range(func(volume, last any) bool {
		if b.now().Sub(last.(backoff).next) > recycleMemory {
			b.recycles.Delete(volume)
		}
		return true
	})
}

// recycled gives an empty volume back.
func (b *binder) recycled(ctx context.Context, volume *corev1.PersistentVolume, pod *corev1.Pod) error {
	if volume, err := b.stillReleased(ctx, volume); err != nil || volume == nil {
		return errors.Join(err, b.removeRecycler(ctx, pod))
	}
	if err := b.removeRecycler(ctx, pod); err != nil {
		return err
	}
	b.recycles.Delete(volume.UID)
	b.recorder.Normal(volume, reasonRecycled, actionReclaim, "Volume recycled")
	return b.unbind(ctx, volume)
}

// removeRecycler deletes a recycler Pod.
func (b *binder) removeRecycler(ctx context.Context, pod *corev1.Pod) error {
	err := b.pods.Delete(ctx, object.KeyOf(pod), client.IfUID(pod.UID))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the recycler Pod: %w", err)
	}
	return nil
}
