// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package attachdetach

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/attachable"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// scene is a part of a real server: a few Nodes without machines, volumes, and a driver and
// kubelets that the test plays.
type scene struct {
	t         *testing.T
	cluster   *controlplanetest.Cluster
	namespace string
	driver    string // its own, so that scenes do not meet
	nodes     []string
	volumes   []string

	mu      sync.Mutex
	mounted map[spot]bool
}

func newScene(t *testing.T, nodes, volumes int) *scene {
	t.Helper()
	s := &scene{t: t, cluster: shared.Get(t), mounted: map[spot]bool{}}
	s.namespace = s.cluster.Namespace(t)
	s.driver = s.namespace + ".example.com"
	for i := range nodes {
		name := fmt.Sprintf("%s-%d", s.namespace, i)
		made, err := client.For[*corev1.Node](s.cluster.Client).Create(t.Context(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{Annotation: "true"}}, Spec: corev1.NodeSpec{Unschedulable: true},
		})
		s.must(err)
		made.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		_, err = client.For[*corev1.Node](s.cluster.Client).UpdateStatus(t.Context(), made)
		s.must(err)
		s.nodes = append(s.nodes, name)
		t.Cleanup(func() {
			_ = client.For[*corev1.Node](s.cluster.Client).Delete(context.WithoutCancel(t.Context()), object.Key{Name: name})
		})
	}
	for i := range volumes {
		s.volume(fmt.Sprintf("data-%d", i))
	}
	return s
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// volume makes a claim and its volume, bound to each other.
func (s *scene) volume(name string) {
	s.t.Helper()
	ctx, c := s.t.Context(), s.cluster.Client
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv := s.namespace + "-" + name
	claims := client.For[*corev1.PersistentVolumeClaim](c)
	claim, err := claims.Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: pv, AccessModes: modes, StorageClassName: new(""), Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	})
	s.must(err)
	_, err = client.For[*corev1.PersistentVolume](c).Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: pv},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes,
			ClaimRef:               &corev1.ObjectReference{Namespace: s.namespace, Name: name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: s.driver, VolumeHandle: name}},
		},
	})
	s.must(err)
	claim.Status.Phase = corev1.ClaimBound
	_, err = claims.UpdateStatus(ctx, claim)
	s.must(err)
	s.volumes = append(s.volumes, name)
}

func (s *scene) unique(volume string) corev1.UniqueVolumeName {
	return attachable.UniqueCSI(s.driver, volume)
}

// pod makes a Pod with a volume at a node.
func (s *scene) pod(name, node, volume string) {
	s.t.Helper()
	_, err := client.For[*corev1.Pod](s.cluster.Client).Create(s.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "main", Image: "web"}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volume}}}},
		},
	})
	s.must(err)
}

func (s *scene) removePod(name string) {
	s.t.Helper()
	err := client.For[*corev1.Pod](s.cluster.Client).Delete(s.t.Context(), object.Key{Namespace: s.namespace, Name: name}, client.GracePeriod(0))
	if !client.Absent(err) {
		s.must(err)
	}
}

// play has the driver and the kubelets of the scene work until ctx ends.
func (s *scene) play(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		err := s.playDriver(ctx, random)
		if err == nil {
			err = s.playKubelets(ctx)
		}
		if err != nil && ctx.Err() == nil {
			s.t.Error(err)
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond): // the pace of the played parts
		}
	}
}

func (s *scene) playDriver(ctx context.Context, random *rand.Rand) error {
	attachments := client.For[*storagev1.VolumeAttachment](s.cluster.Client)
	all, _, err := attachments.List(ctx, client.Selection{})
	if err != nil {
		return err
	}
	for _, va := range all {
		if va.Spec.Attacher != s.driver || random.IntN(3) == 0 {
			continue
		}
		switch {
		case va.DeletionTimestamp != nil:
			va.Finalizers = nil
			_, err = attachments.Update(ctx, va)
		case len(va.Finalizers) == 0:
			va.Finalizers = []string{"external-attacher/" + s.driver}
			_, err = attachments.Update(ctx, va)
		case !va.Status.Attached && random.IntN(4) == 0:
			va.Status.AttachError = &storagev1.VolumeError{Message: "the array is busy"}
			_, err = attachments.UpdateStatus(ctx, va)
		case !va.Status.Attached:
			va.Status.Attached, va.Status.AttachError = true, nil
			_, err = attachments.UpdateStatus(ctx, va)
		}
		if err != nil && !client.Absent(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// playKubelets has the kubelets mount what their Nodes name, after saying so, and unmount what no
// Pod needs.
func (s *scene) playKubelets(ctx context.Context) error {
	nodes := client.For[*corev1.Node](s.cluster.Client)
	pods, _, err := client.For[*corev1.Pod](s.cluster.Client).List(ctx, client.Selection{Namespace: s.namespace})
	if err != nil {
		return err
	}
	for _, name := range s.nodes {
		node, err := nodes.Get(ctx, object.Key{Name: name})
		if err != nil {
			return err
		}
		needed := map[corev1.UniqueVolumeName]bool{}
		for _, pod := range pods {
			if pod.Spec.NodeName == name {
				needed[s.unique(pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName)] = true
			}
		}
		inUse := []corev1.UniqueVolumeName{}
		s.mu.Lock()
		for at := range s.mounted {
			if at.node == name && !needed[at.volume] {
				delete(s.mounted, at)
				inUse = append(inUse, at.volume)
			}
		}
		for volume := range needed {
			if slices.Contains(node.Status.VolumesInUse, volume) && reports(node, volume) {
				s.mounted[spot{volume, name}] = true
			}
			inUse = append(inUse, volume)
		}
		s.mu.Unlock()
		slices.Sort(inUse)
		if slices.Equal(inUse, node.Status.VolumesInUse) {
			continue
		}
		patch, err := client.MergePatch(map[string]any{"status": map[string]any{"volumesInUse": inUse}})
		if err == nil {
			_, err = nodes.Sub("status").Patch(ctx, object.Key{Name: name}, patch)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// watch fails the test at each version at which an exclusive volume has two attachments, or one
// that is being deleted while the volume is mounted.
func (s *scene) watch() {
	s.t.Helper()
	var mu sync.Mutex
	at := map[string]map[string]string{} // volume, node, version
	eyes := managertest.Run(s.t, s.cluster.Config)
	informer := cache.Informer[*storagev1.VolumeAttachment](eyes)
	_, err := informer.AddHandler(func(e cache.Event[*storagev1.VolumeAttachment]) {
		va, err := e.Item().Object()
		if err != nil || va.Spec.Attacher != s.driver {
			return
		}
		volume := *va.Spec.Source.PersistentVolumeName
		mu.Lock()
		defer mu.Unlock()
		if at[volume] == nil {
			at[volume] = map[string]string{}
		}
		at[volume][va.Spec.NodeName] = va.ResourceVersion
		if e.Kind == cache.Deleted {
			delete(at[volume], va.Spec.NodeName)
		}
		if len(at[volume]) > 1 {
			s.t.Errorf("resourceVersion %s: the volume %s has attachments at the nodes %v", va.ResourceVersion, volume, at[volume])
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if where := (spot{s.unique(strings.TrimPrefix(volume, s.namespace+"-")), va.Spec.NodeName}); va.DeletionTimestamp != nil && s.mounted[where] {
			s.t.Errorf("resourceVersion %s: %s is detached while it is mounted", va.ResourceVersion, where)
		}
	}, cache.HandlerOptions{Name: s.t.Name(), EveryStep: true})
	s.must(err)
	s.must(informer.WaitForSync(s.t.Context()))
}

// A random history of Pods on a real server, with a controller that is killed again and again: no
// volume for one node is ever at two, none leaves a node that has it mounted, and in the end each
// is where its Pod is. The controller has the rights that it declares.
func TestVolumesOfARandomHistoryAreNeverAtTwoNodes(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newScene(t, 3, 4)
	s.watch()
	config := s.cluster.Restricted(t, Rights())
	ctx, end := context.WithCancel(t.Context())
	var playing sync.WaitGroup
	playing.Go(func() { s.play(ctx, rand.New(rand.NewPCG(seed, 1))) })
	defer func() { end(); playing.Wait() }()

	p := managertest.Run(t, config, managertest.Making(New, Defaults()))
	where := map[string]string{}
	for step := range 40 {
		volume := s.volumes[random.IntN(len(s.volumes))]
		if where[volume] != "" {
			s.removePod("pod-" + volume)
		}
		where[volume] = s.nodes[random.IntN(len(s.nodes))]
		s.pod("pod-"+volume, where[volume], volume)
		if step%8 == 7 {
			p.Kill()
			p = managertest.Run(t, config, managertest.Making(New, Defaults()))
		}
		if random.IntN(3) == 0 { // sometimes it comes to rest
			controlplanetest.Eventually(t, "the volume "+volume+" is mounted", func() bool { return s.isMounted(volume, where[volume]) })
		}
	}
	for volume, node := range where {
		controlplanetest.Eventually(t, fmt.Sprintf("the volume %s is mounted at %s; %v", volume, node, p.Reasons(string(s.unique(volume)))),
			func() bool { return s.isMounted(volume, node) })
		s.removePod("pod-" + volume)
	}
	attachments := client.For[*storagev1.VolumeAttachment](s.cluster.Client)
	controlplanetest.Eventually(t, "all volumes are detached", func() bool {
		all, _, err := attachments.List(t.Context(), client.Selection{})
		return err == nil && !slices.ContainsFunc(all, func(va *storagev1.VolumeAttachment) bool { return va.Spec.Attacher == s.driver })
	})
	if warnings := p.Warnings(); slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "forbidden") || strings.Contains(w, "lack a right") }) {
		t.Errorf("it lacks a right: %q", warnings)
	}
}

func (s *scene) isMounted(volume, node string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mounted[spot{s.unique(volume), node}]
}
