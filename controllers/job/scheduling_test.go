// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// gangs is a cluster that serves Workloads and PodGroups.
type gangs struct {
	*cluster
	workloads, groups *fakeapi.Resource
}

func newGangs(t *testing.T) *gangs {
	t.Helper()
	c := newCluster(t)
	return &gangs{
		cluster:   c,
		workloads: c.Serve(object.Resource{Group: "scheduling.k8s.io", Version: "v1beta1", Plural: "workloads", Kind: "Workload", Namespaced: true}),
		groups:    c.Serve(object.Resource{Group: "scheduling.k8s.io", Version: "v1beta1", Plural: "podgroups", Kind: "PodGroup", Namespaced: true}, fakeapi.WithStatus()),
	}
}

// manage runs the controller with the feature gate on or off.
func (c *gangs) manage(on bool) *managertest.Process {
	c.t.Helper()
	o := Defaults()
	o.Scheduling = on
	p := managertest.Run(c.t, c.Config(), managertest.Making(New, o))
	synctest.Wait()
	return p
}

// one returns the one Workload and the one PodGroup that there are.
func (c *gangs) one() (*schedulingv1beta1.Workload, *schedulingv1beta1.PodGroup) {
	c.t.Helper()
	workloads, err := fakeapi.Objects[*schedulingv1beta1.Workload](c.workloads)
	if err != nil {
		c.t.Fatal(err)
	}
	groups, err := fakeapi.Objects[*schedulingv1beta1.PodGroup](c.groups)
	if err != nil {
		c.t.Fatal(err)
	}
	if len(workloads) != 1 || len(groups) != 1 {
		c.t.Fatalf("there are the Workloads %q and the PodGroups %q, want one of each", c.workloads.Keys(), c.groups.Keys())
	}
	return workloads[0], groups[0]
}

// wantPods compares how many Pods are active, and the PodGroup that each of them names.
func (c *gangs) wantPods(when string, n int, group string) {
	c.t.Helper()
	pods := c.active()
	if len(pods) != n {
		c.t.Errorf("%s %d Pods are active, want %d", when, len(pods), n)
	}
	for _, pod := range pods {
		if got := groupNameOf(pod); got != group {
			c.t.Errorf("%s Pod %s belongs to PodGroup %q, want %q", when, pod.Name, got, group)
		}
		if len(pod.OwnerReferences) != 1 {
			c.t.Errorf("%s Pod %s has the owners %+v, want its Job alone", when, pod.Name, pod.OwnerReferences)
		}
	}
}

func groupNameOf(pod *corev1.Pod) string {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return *g.PodGroupName
	}
	return ""
}

// gang has a Job schedule its Pods together, n of them at least. 0 leaves the number out.
func gang(n int32) func(*batchv1.Job) {
	return func(job *batchv1.Job) {
		policy := &schedulingv1alpha3.WorkloadPodGroupGangSchedulingPolicy{}
		if n > 0 {
			policy.MinCount = &n
		}
		job.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{SchedulingPolicy: &schedulingv1alpha3.WorkloadPodGroupSchedulingPolicy{Gang: policy}}
	}
}

func isSuspended(job *batchv1.Job) { job.Spec.Suspend = new(true) }

func TestAJobHasOneWorkloadAndOnePodGroupWhichItsPodsName(t *testing.T) {
	for name, change := range map[string]func(*batchv1.Job){
		"gang":         gang(2),
		"one by one":   func(*batchv1.Job) {},
		"empty policy": func(j *batchv1.Job) { j.Spec.Scheduling = &batchv1.JobSchedulingConfiguration{} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newGangs(t)
				c.manage(true)
				key := c.create(newJob("report", wants(3, 3), change, func(j *batchv1.Job) { j.Spec.Template.Spec.PriorityClassName = "high" }))
				w, g := c.one()
				job := c.job(key)
				if w.Name != workloadName("report", job.UID) || g.Name != podGroupName(w.Name, "report-pgt-0") {
					t.Errorf("they are called %s and %s", w.Name, g.Name)
				}
				c.wantPods("at first", 3, g.Name)
				ref := w.Spec.ControllerRef
				if !metav1.IsControlledBy(w, job) || ref == nil || *ref != (schedulingv1beta1.TypedLocalObjectReference{APIGroup: "batch", Kind: "Job", Name: "report"}) {
					t.Errorf("the Workload has the owners %+v and the controller %+v", w.OwnerReferences, ref)
				}
				byWorkload := metav1.OwnerReference{APIVersion: "scheduling.k8s.io/v1beta1", Kind: "Workload", Name: w.Name, UID: w.UID}
				if !metav1.IsControlledBy(g, job) || len(g.OwnerReferences) != 2 || g.OwnerReferences[1] != byWorkload {
					t.Errorf("the PodGroup has the owners %+v", g.OwnerReferences)
				}
				if len(w.Spec.PodGroupTemplates) != 1 || w.Spec.PodGroupTemplates[0].PriorityClassName != "high" || g.Spec.PriorityClassName != "high" {
					t.Errorf("the templates are %+v, and the PodGroup %+v", w.Spec.PodGroupTemplates, g.Spec)
				}
				policy := g.Spec.SchedulingPolicy
				if isGang := policy.Gang != nil && policy.Gang.MinCount == 2 && policy.Basic == nil; isGang != (name == "gang") || !isGang && policy.Basic == nil {
					t.Errorf("the policy is %+v", policy)
				}
				if r := g.Spec.WorkloadRef; r == nil || *r != (schedulingv1beta1.WorkloadReference{WorkloadName: w.Name, TemplateName: "report-pgt-0"}) {
					t.Errorf("the PodGroup refers to %+v", g.Spec.WorkloadRef)
				}
				for reason, note := range map[string]string{
					reasonWorkloadCreated: "Created Workload " + w.Name + " for Job report",
					reasonPodGroupCreated: "Created PodGroup " + g.Name + " for Job report",
				} {
					if notes := c.Notes(reason); !slices.Equal(notes, []string{note}) {
						t.Errorf("the Events %s say %q, want %q", reason, notes, note)
					}
				}
			})
		})
	}
}

// What spec.scheduling says reaches the template and the PodGroup.
func TestASchedulingConfigurationIsCopiedWhole(t *testing.T) {
	job := newJob("report", wants(4, 4), gang(0), func(j *batchv1.Job) {
		s := j.Spec.Scheduling
		s.SchedulingConstraints = &schedulingv1alpha3.WorkloadPodGroupSchedulingConstraints{Topology: []schedulingv1alpha3.TopologyConstraint{{Key: "rack"}}}
		s.DisruptionMode = &schedulingv1alpha3.WorkloadPodGroupDisruptionMode{All: &schedulingv1alpha3.WorkloadPodGroupAllDisruptionMode{}}
		s.ResourceClaims = []schedulingv1alpha3.WorkloadPodGroupResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpus")}, {Name: "net", ResourceClaimName: new("nic")}}
	})
	w := newWorkload(job)
	template := &w.Spec.PodGroupTemplates[0]
	template.Priority = new(int32(7)) // admission sets it
	spec := newPodGroup(job, w, template).Spec
	if spec.SchedulingPolicy.Gang == nil || spec.SchedulingPolicy.Gang.MinCount != 4 {
		t.Errorf("the policy is %+v, want a gang of spec.parallelism", spec.SchedulingPolicy)
	}
	if c := spec.SchedulingConstraints; c == nil || !slices.Equal(c.Topology, []schedulingv1beta1.TopologyConstraint{{Key: "rack"}}) {
		t.Errorf("the constraints are %+v", c)
	}
	if spec.DisruptionMode == nil || spec.DisruptionMode.All == nil || spec.DisruptionMode.Single != nil || *spec.Priority != 7 {
		t.Errorf("the PodGroup is %+v", spec)
	}
	if len(spec.ResourceClaims) != 2 || *spec.ResourceClaims[0].ResourceClaimTemplateName != "gpus" || *spec.ResourceClaims[1].ResourceClaimName != "nic" {
		t.Errorf("the claims are %+v", spec.ResourceClaims)
	}
	for parallelism, want := range map[int32]int32{0: 1, 1: 1, 9: 9} {
		job.Spec.Parallelism = &parallelism
		if least, gang := minCount(job); least != want || !gang {
			t.Errorf("with a parallelism of %d the gang has %d, want %d", parallelism, least, want)
		}
	}
}

// The names are those that the functions of kube-controller-manager 1.37.2 return.
func TestNamesOfWorkloadsAndPodGroupsAreUpstreams(t *testing.T) {
	if name := workloadName("report", "0b4ad7a0-0f2c-4a1b-8a63-6b2d8a2f0c11"); name != "report-75476967cf" {
		t.Errorf("the Workload is called %s", name)
	}
	if name := podGroupName("report-75476967cf", "report-pgt-0"); name != "report-75476967cf-report-pgt-0-758dbf74fc" {
		t.Errorf("the PodGroup is called %s", name)
	}
	if name := workloadName(strings.Repeat("j", 253), "u"); sum(name) != 0x52c3854b || len(name) != 253 {
		t.Errorf("a Workload with a long name is called %s", name)
	}
	for lengths, want := range map[[2]int]uint32{{60, 253}: 0x7c9408e2, {253, 60}: 0x89a3d4d3, {253, 253}: 0x167e0f7c, {130, 130}: 0xdf191dca, {120, 122}: 0x5fcde9d6} {
		name := podGroupName(strings.Repeat("w", lengths[0]), strings.Repeat("t", lengths[1]))
		if sum(name) != want || len(name) != 253 {
			t.Errorf("a PodGroup of %d and %d letters is called %s", lengths[0], lengths[1], name)
		}
	}
}

func sum(text string) uint32 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, text)
	return h.Sum32()
}

// A template is a DNS label. kube-controller-manager makes one that the server refuses.
func TestTheNameOfATemplateIsADNSLabel(t *testing.T) {
	seen := map[string]string{}
	for _, job := range []string{"report", "report.v2", "report-v2", strings.Repeat("j", 57), strings.Repeat("j", 58), strings.Repeat("j", 63), strings.Repeat("j", 62) + "k"} {
		name := templateName(job)
		if len(job) <= 57 && !strings.Contains(job, ".") && name != job+"-pgt-0" {
			t.Errorf("the template of %s is called %s, and upstream's is %s-pgt-0", job, name, job)
		}
		if len(name) > 63 || strings.Contains(name, ".") || seen[name] != "" {
			t.Errorf("the template of %s is called %s, as that of %q", job, name, seen[name])
		}
		seen[name] = job
	}
}

// A suspended Job has both before it has Pods, and keeps them when it is suspended again.
func TestASuspendedJobKeepsItsPodGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGangs(t)
		c.manage(true)
		key := c.create(newJob("report", wants(2, 2), gang(2), isSuspended))
		_, first := c.one()
		c.wantPods("suspended", 0, "")
		for i := range 2 {
			c.edit(key, func(j *batchv1.Job) { j.Spec.Suspend = new(false) })
			pass(2 * time.Second)
			c.wantPods(fmt.Sprint("resumed ", i), 2, first.Name)
			c.edit(key, func(j *batchv1.Job) { j.Spec.Suspend = new(true) })
			pass(2 * time.Second)
		}
		if _, now := c.one(); now.UID != first.UID {
			t.Error("the PodGroup is another one")
		}
	})
}

func TestAGangIsResizedWithItsJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGangs(t)
		c.manage(true)
		resize := func(key object.Key, change func(*batchv1.Job), want int32) {
			t.Helper()
			c.edit(key, change)
			w, g := c.one()
			if a, b := w.Spec.PodGroupTemplates[0].SchedulingPolicy.Gang.MinCount, g.Spec.SchedulingPolicy.Gang.MinCount; a != want || b != want {
				t.Errorf("the template has a gang of %d and the PodGroup of %d, want %d", a, b, want)
			}
		}
		key := c.create(newJob("report", wants(4, 4), gang(4)))
		resize(key, func(j *batchv1.Job) { j.Spec.Scheduling.SchedulingPolicy.Gang.MinCount = new(int32(2)) }, 2)
		resize(key, func(j *batchv1.Job) {
			j.Spec.Scheduling.SchedulingPolicy.Gang.MinCount = nil
			j.Spec.Parallelism = new(int32(3))
		}, 3)
		// Others keep what they wrote into the objects, unless it is the size of the gang.
		w, _ := c.one()
		if err := fakeapi.Change(c.workloads, object.KeyOf(w), func(w *schedulingv1beta1.Workload) {
			w.Labels = map[string]string{"team": "a"}
			w.Spec.PodGroupTemplates[0].SchedulingPolicy.Gang.MinCount = 9
		}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if w, _ = c.one(); w.Labels["team"] != "a" || w.Spec.PodGroupTemplates[0].SchedulingPolicy.Gang.MinCount != 3 {
			t.Errorf("the Workload is %+v", w)
		}
	})
}

// Objects of others are left alone, and so are Jobs that are older than the feature gate.
func TestJobsThatGetNoPodGroup(t *testing.T) {
	started := metav1.NewTime(time.Unix(1_700_000_000, 0))
	for name, test := range map[string]struct {
		change []func(*batchv1.Job)
		group  string
		reason string
	}{
		"the template names a PodGroup": {change: []func(*batchv1.Job){func(j *batchv1.Job) {
			j.Spec.Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("theirs")}
		}}, group: "theirs"},
		"another controller has the Job": {change: []func(*batchv1.Job){gang(1), func(j *batchv1.Job) {
			j.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "CronJob", Name: "nightly", UID: "c", Controller: new(true)}}
		}}, reason: "NoPodGroup: spec.scheduling has no effect, because the Job belongs to CronJob nightly, which has not set the annotation scheduling.k8s.io/group-template-name"},
		"the Job has started": {change: []func(*batchv1.Job){gang(1), func(j *batchv1.Job) { j.Status.StartTime = &started }},
			reason: "NoPodGroup: the Job has started without a PodGroup, so its Pods are scheduled one by one"},
		"the Job has Pods that ended": {change: []func(*batchv1.Job){gang(1), func(j *batchv1.Job) { j.Status.Failed = 1 }},
			reason: "NoPodGroup: the Job has started without a PodGroup, so its Pods are scheduled one by one"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newGangs(t)
				job := newJob("report", append(test.change, wants(5, 1))...)
				c.Add(c.jobs, job)
				p := c.manage(true)
				pass(2 * time.Second)
				if len(c.workloads.Keys())+len(c.groups.Keys()) > 0 {
					t.Errorf("there are the Workloads %q and the PodGroups %q", c.workloads.Keys(), c.groups.Keys())
				}
				c.wantPods("at the end", 1, test.group)
				reasons := slices.DeleteFunc(p.Reasons(object.KeyOf(job).String()), func(r string) bool { return !strings.HasPrefix(r, codeNoGang) })
				if strings.Join(reasons, "\n") != test.reason {
					t.Errorf("the reasons are %q, want %q", reasons, test.reason)
				}
			})
		})
	}
}

func TestTheFeatureGateGoesOffAndOnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGangs(t)
		p := c.manage(true)
		key := c.create(newJob("report", wants(6, 1), gang(1)))
		_, g := c.one()
		c.wantPods("at first", 1, g.Name)
		p.Stop()

		p = c.manage(false)
		c.endAll(0)
		c.wantPods("with the gate off", 1, "")
		want := "NoPodGroup: spec.scheduling has no effect, because the feature gate WorkloadWithJob is off (until the gate is on)"
		if reasons := p.Reasons(key.String()); !slices.Contains(reasons, want) {
			t.Errorf("the reasons are %q, want %q", reasons, want)
		}
		late := c.create(newJob("late", wants(2, 1), gang(1))) // starts with the gate off
		p.Stop()

		c.manage(true)
		c.endAll(0)
		for _, pod := range c.active() {
			want := ""
			if ref := metav1.GetControllerOf(pod); ref.Name == "report" {
				want = g.Name
			}
			if got := groupNameOf(pod); got != want {
				t.Errorf("with the gate on again Pod %s belongs to %q, want %q", pod.Name, got, want)
			}
		}
		if n := len(c.active()); n != 2 {
			t.Errorf("%d Pods are active, want one of each Job: %v", n, late)
		}
	})
}

// A parent that has a Workload leaves the PodGroup of a part to the Job.
func TestAPartOfSomethingLargerGetsAPodGroupFromTheWorkloadOfItsController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGangs(t)
		p := c.manage(true)
		parent := metav1.OwnerReference{APIVersion: "example.com/v1", Kind: "Training", Name: "big", UID: "t", Controller: new(true)}
		w := &schedulingv1beta1.Workload{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "big", OwnerReferences: []metav1.OwnerReference{parent}},
			Spec: schedulingv1beta1.WorkloadSpec{
				ControllerRef: &schedulingv1beta1.TypedLocalObjectReference{APIGroup: "example.com", Kind: "Training", Name: "big"},
				PodGroupTemplates: []schedulingv1beta1.PodGroupTemplate{
					{Name: "leader", SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}},
					{Name: "workers", SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 2}}},
				},
			},
		}
		part := func(template string) func(*batchv1.Job) {
			return func(j *batchv1.Job) {
				j.OwnerReferences, j.Annotations = []metav1.OwnerReference{parent}, map[string]string{templateAnnotation: template}
			}
		}
		// The cache does not show the Workload when it shows the Job.
		c.workloads.HoldWatches(true)
		c.Add(c.workloads, w)
		c.create(newJob("workers", wants(2, 2), part("workers")))
		groups, err := fakeapi.Objects[*schedulingv1beta1.PodGroup](c.groups)
		if err != nil || len(groups) != 1 {
			t.Fatalf("there are the PodGroups %q (%v), want one", c.groups.Keys(), err)
		}
		g := groups[0]
		c.wantPods("before the cache shows the Workload", 2, g.Name)
		if g.Name != podGroupName("big", "workers") || len(g.OwnerReferences) != 1 || g.Spec.SchedulingPolicy.Gang.MinCount != 2 || len(c.workloads.Keys()) != 1 {
			t.Errorf("the PodGroup is %+v, of %d Workloads", g, len(c.workloads.Keys()))
		}
		c.workloads.HoldWatches(false)
		synctest.Wait()
		// The parent resizes its gang.
		if err := fakeapi.Change(c.workloads, object.KeyOf(w), func(w *schedulingv1beta1.Workload) {
			w.Spec.PodGroupTemplates[1].SchedulingPolicy.Gang.MinCount = 1
		}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		if g, err = fakeapi.Read[*schedulingv1beta1.PodGroup](c.groups, object.KeyOf(g)); err != nil || g.Spec.SchedulingPolicy.Gang.MinCount != 1 {
			t.Errorf("the PodGroup is %+v (%v), want a gang of 1", g, err)
		}
		// A template that is not there, and a parent without a Workload, leave the Pods alone.
		lost := c.create(newJob("lost", part("helpers")))
		pass(2 * time.Second)
		if why := p.Reasons(lost.String()); !slices.Contains(why, "NoPodGroup: the Workload big has no PodGroup template helpers, so the Pods are scheduled one by one") {
			t.Errorf("the reasons are %q", why)
		}
		orphan := c.create(newJob("orphan", part("workers"), func(j *batchv1.Job) { j.OwnerReferences[0].Name = "small" }))
		pass(2 * time.Second)
		if why := p.Reasons(orphan.String()); !slices.Contains(why, "NoPodGroup: no Workload belongs to Training small, so the Pods are scheduled one by one") {
			t.Errorf("the reasons are %q", why)
		}
		for _, pod := range c.active() {
			if ref := metav1.GetControllerOf(pod); ref.Name != "workers" && groupNameOf(pod) != "" {
				t.Errorf("Pod %s belongs to %s", pod.Name, groupNameOf(pod))
			}
		}
	})
}

// A Job whose Workload the server refuses waits for it, and does not start in the meantime.
func TestAJobWithoutAPodGroupDoesNotStart(t *testing.T) {
	for _, refused := range []string{"workloads", "podgroups"} {
		t.Run(refused, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newGangs(t)
				p := c.manage(true)
				of := map[string]*fakeapi.Resource{"workloads": c.workloads, "podgroups": c.groups}[refused]
				of.Before(func(q *fakeapi.Request) *metav1.Status {
					if q.Verb != "create" {
						return nil
					}
					return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "quota is exceeded"}
				})
				key := c.create(newJob("report", wants(2, 2), gang(2)))
				pass(30 * time.Second)
				c.wantPods("while it is refused", 0, "")
				if c.job(key).Status.StartTime != nil {
					t.Error("the Job has started")
				}
				if why := strings.Join(p.Reasons(key.String()), "\n"); !strings.Contains(why, codeNoPodGroup) || !strings.Contains(why, "quota is exceeded") {
					t.Errorf("the reasons are %q", why)
				}
				of.Before(nil)
				pass(2 * time.Minute)
				_, g := c.one()
				c.wantPods("at the end", 2, g.Name)
			})
		})
	}
}

// Pods that end are counted also while no others may start.
func TestAJobWhoseWorkloadWasChangedStartsNoPodsAndCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGangs(t)
		p := c.manage(true)
		key := c.create(newJob("report", wants(4, 2), gang(1)))
		w, g := c.one()
		if err := fakeapi.Change(c.workloads, object.KeyOf(w), func(w *schedulingv1beta1.Workload) {
			w.Spec.PodGroupTemplates = append(w.Spec.PodGroupTemplates, schedulingv1beta1.PodGroupTemplate{Name: "more"})
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		c.endAll(0)
		c.wantCounts("with two templates", key, 0, 2, 0)
		want := "PodGroupNotMade: the Workload " + w.Name + " of the Job has 2 PodGroup templates, and must have one (until it has one)"
		if why := p.Reasons(key.String()); !slices.Contains(why, want) {
			t.Errorf("the reasons are %q, want %q", why, want)
		}
		if err := fakeapi.Change(c.workloads, object.KeyOf(w), func(w *schedulingv1beta1.Workload) {
			w.Spec.PodGroupTemplates = w.Spec.PodGroupTemplates[:1]
		}); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Second)
		c.wantPods("at the end", 2, g.Name)
	})
}

// An object of another owner that has the name is left alone.
func TestAWorkloadOfAnotherOwnerIsNotUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGangs(t)
		job := newJob("report", gang(1))
		job.UID = "0b4ad7a0-0f2c-4a1b-8a63-6b2d8a2f0c11"
		foreign := newWorkload(job)
		foreign.OwnerReferences = nil
		c.Add(c.workloads, foreign)
		c.manage(true)
		c.Add(c.jobs, job)
		pass(5 * time.Second)
		c.wantPods("with a foreign Workload", 0, "")
		if notes := c.Notes(reasonWorkloadFailed); len(notes) != 1 || !strings.Contains(notes[0], "already exists") {
			t.Errorf("the Events say %q", notes)
		}
		c.Delete(c.workloads, object.KeyOf(foreign))
		pass(time.Minute)
		_, g := c.one()
		c.wantPods("when it is gone", 1, g.Name)
	})
}

func TestAProcessThatIsKilledMakesTheObjectsOfAGangOnce(t *testing.T) {
	managertest.KilledAfterEachWrite(t, func(t *testing.T) managertest.Scene {
		c := newGangs(t)
		o := Defaults()
		o.Scheduling = true
		if _, err := client.For[*batchv1.Job](c.Client).Create(t.Context(), newJob("report", wants(2, 2), gang(2))); err != nil {
			t.Fatal(err)
		}
		return managertest.Scene{
			Config: c.Config(), Make: managertest.Making(New, o), Await: managertest.Settle,
			Check: func(*testing.T) {
				_, g := c.one()
				c.wantPods("at the end", 2, g.Name)
			},
		}
	})
}
