// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/job"
	"github.com/setpoint-io/setpoint/controllers/podgroupprotection"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
)

// gates are the feature gates of kinds that a server does not serve by default, and versions are
// the versions of their APIs: Workloads and PodGroups with what belongs to them,
// ResourcePoolStatusRequests, StorageVersions.
var (
	gates = map[string]bool{
		"GenericWorkload": true, "WorkloadWithJob": true, "TopologyAwareWorkloadScheduling": true, "DRAWorkloadResourceClaims": true,
		"DRAResourcePoolStatus": true, "StorageVersionAPI": true,
	}
	versions = map[string]string{"scheduling.k8s.io/v1beta1": "true", "resource.k8s.io/v1alpha3": "true", "internal.apiserver.k8s.io/v1alpha1": "true"}
)

// TestKindsBehindFeatureGates has one cluster with these gates, for the tests below.
func TestKindsBehindFeatureGates(t *testing.T) {
	plane := controlplanetest.Start(t, controlplanetest.Options{Nodes: 2, FeatureGates: gates, RuntimeConfig: versions})
	for name, test := range map[string]func(*cluster){
		"a gang is scheduled together and goes with its Job": gangIsScheduledTogether,
		"the server takes the objects of every Job":          everyNameHasAPodGroup,
		"a gang changes hands":                               gangChangesHands,
		"the Pods of a PodGroup share a claim":               gangSharesAClaim,
		"a shared claim survives kills":                      sharedClaimSurvivesKills,
		"both managers count the devices of a pool alike":    poolsAreCountedAlike,
		"both managers forget servers that are gone":         goneServersAreForgotten,
	} {
		t.Run(name, func(t *testing.T) { test(&cluster{Cluster: plane, t: t, namespace: plane.Namespace(t)}) })
	}
	for _, l := range labourBehindGates() {
		t.Run(l.controller+" alone, killed after its writes", func(t *testing.T) { l.killedAfterItsWrites(t, plane) })
	}
}

// runGangs runs the controllers that Jobs with PodGroups need, job-controller with its own rights.
func (c *cluster) runGangs() {
	c.t.Helper()
	o := job.Defaults()
	o.Scheduling = true
	c.run(c.Config, garbage, managertest.Making(podgroupprotection.New, podgroupprotection.Defaults()))
	c.run(c.Restricted(c.t, job.Rights()), managertest.Making(job.New, o))
}

// gangJob is a Job whose Pods run until they are deleted, each on a node of its own.
func gangJob(name, scheduling string, pods int) string {
	return strings.NewReplacer("NAME", name, "PODS", fmt.Sprint(pods), "SCHEDULING", scheduling).Replace(`{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "NAME"},
		"spec": {"parallelism": PODS, "completions": PODS, SCHEDULING "template": {
			"metadata": {"labels": {"gang": "NAME"}, "annotations": {"sim.setpoint.io/exit-after": "never"}},
			"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "web"}],
			"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
				{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"gang": "NAME"}}}]}}}}}}`)
}

func gangOf(n int) string {
	return fmt.Sprintf(`"scheduling": {"schedulingPolicy": {"gang": {"minCount": %d}}},`, n)
}

// members returns the Pods of a Job and the PodGroup that they name.
func (c *cluster) members(job string) (pods []*corev1.Pod, group string) {
	c.t.Helper()
	all, _, err := client.For[*corev1.Pod](c.Client).List(c.t.Context(), client.Selection{Namespace: c.namespace})
	if err != nil {
		c.t.Fatal(err)
	}
	groups := map[string]bool{}
	for _, pod := range all {
		if ref := metav1.GetControllerOf(pod); ref == nil || ref.Name != job {
			continue
		}
		name := ""
		if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
			name = *g.PodGroupName
		}
		pods, groups[name] = append(pods, pod), true
	}
	if len(groups) > 1 {
		c.t.Errorf("the Pods of Job %s name the PodGroups %v", job, groups)
	}
	for name := range groups {
		group = name
	}
	return pods, group
}

func bound(pods []*corev1.Pod) (n int) {
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			n++
		}
	}
	return n
}

// The scheduler binds all Pods of a gang or none. A gang that is made smaller is bound. When its Job
// is deleted, Pods, PodGroup and Workload go.
func gangIsScheduledTogether(c *cluster) {
	c.runGangs()
	c.manifest(gangJob("big", gangOf(3), 3))
	c.manifest(gangJob("loose", "", 3)) // as it was before: the Pods that fit are bound
	c.eventually(func() string {
		if pods, _ := c.members("loose"); bound(pods) != 2 {
			return fmt.Sprintf("%d of %d Pods of the Job without a gang are bound, want 2", bound(pods), len(pods))
		}
		return ""
	})
	pods, group := c.members("big")
	if group == "" || bound(pods) != 0 || len(pods) != 3 {
		c.t.Errorf("%d of %d Pods of the gang %q are bound, and there is no room for 3", bound(pods), len(pods), group)
	}
	c.kubectl("patch", "job/big", "--patch", `{"spec": {"scheduling": {"schedulingPolicy": {"gang": {"minCount": 2}}}}}`)
	c.eventually(func() string {
		g, err := client.For[*schedulingv1beta1.PodGroup](c.Client).Get(c.t.Context(), c.key(group))
		if err != nil {
			return err.Error()
		}
		w, err := client.For[*schedulingv1beta1.Workload](c.Client).Get(c.t.Context(), c.key(g.Spec.WorkloadRef.WorkloadName))
		if err != nil {
			return err.Error()
		}
		if a, b := w.Spec.PodGroupTemplates[0].SchedulingPolicy.Gang.MinCount, g.Spec.SchedulingPolicy.Gang.MinCount; a != 2 || b != 2 {
			return fmt.Sprintf("the gang has %d Pods in the Workload and %d in the PodGroup, want 2", a, b)
		}
		if pods, _ := c.members("big"); bound(pods) != 2 {
			return fmt.Sprintf("%d of %d Pods of the smaller gang are bound, want 2", bound(pods), len(pods))
		}
		return ""
	})
	c.kubectl("delete", "job", "big", "loose", "--timeout", patience.String())
	for _, kind := range []string{"pods", "podgroups", "workloads"} {
		c.eventually(c.count(kind, 0))
	}
}

// A Job whose name is no DNS label has a PodGroup too, and so has one that is suspended at first.
func everyNameHasAPodGroup(c *cluster) {
	c.runGangs()
	for _, name := range []string{"report.v2", strings.Repeat("j", 63), "a"} {
		c.manifest(gangJob(name, gangOf(1)+`"suspend": true,`, 1))
		c.eventually(c.count("podgroups", 1))
		c.kubectl("patch", "job/"+name, "--patch", `{"spec": {"suspend": false}}`)
		c.eventually(func() string {
			pods, group := c.members(name)
			if len(pods) != 1 || group == "" {
				return fmt.Sprintf("Job %s has %d Pods, in the PodGroup %q", name, len(pods), group)
			}
			return ""
		})
		c.kubectl("delete", "job", name, "--cascade=foreground", "--timeout", patience.String())
		c.eventually(c.count("podgroups", 0))
	}
}

// kube-controller-manager and Setpoint make the same objects, and each goes on with those of the
// other.
func gangChangesHands(c *cluster) {
	t := c.t
	theirs := func() (stop func()) { return c.runTheirs(job.Name, "GenericWorkload=true,WorkloadWithJob=true") }
	ours := func() (stop func()) {
		o := job.Defaults()
		o.Scheduling = true
		return c.run(c.Config, managertest.Making(job.New, o)).Stop
	}
	scheduling := `"scheduling": {"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}, "schedulingConstraints": {"topology": [{"key": "rack"}]},
		"resourceClaims": [{"name": "dev", "resourceClaimTemplateName": "devs"}]}, "suspend": true,`
	made := map[string][]any{}
	for _, turn := range []struct {
		name        string
		first, next func() func()
	}{{"theirs", theirs, ours}, {"ours", ours, theirs}} {
		c.manifest(gangJob(turn.name, scheduling, 2))
		stop := turn.first()
		c.eventually(func() string {
			if made[turn.name] = c.gangObjects(turn.name); len(made[turn.name]) != 2 {
				return "there are no Workload and PodGroup"
			}
			return ""
		})
		before := c.uids()
		stop()
		stop = turn.next()
		c.kubectl("patch", "job/"+turn.name, "--patch", `{"spec": {"suspend": false}}`)
		c.eventually(func() string {
			if pods, group := c.members(turn.name); len(pods) != 2 || group == "" {
				return fmt.Sprintf("%d Pods are in the PodGroup %q, want 2", len(pods), group)
			}
			return ""
		})
		if after := c.uids(); !maps.Equal(before, after) {
			t.Errorf("of Job %s there were the objects %v, and are %v", turn.name, before, after)
		}
		stop()
	}
	if a, b := fmt.Sprint(made["theirs"]...), fmt.Sprint(made["ours"]...); a != b {
		t.Errorf("kube-controller-manager makes\n%s\nand Setpoint makes\n%s", a, b)
	}
}

// runTheirs runs a controller of kube-controller-manager until it is stopped, or the test ends.
func (c *cluster) runTheirs(controller, gates string) (stop func()) {
	c.t.Helper()
	binary, err := controlplanetest.Binary("kube-controller-manager")
	if err != nil {
		c.t.Fatal(err)
	}
	var log bytes.Buffer
	command := exec.CommandContext(c.t.Context(), binary, "--kubeconfig", c.Kubeconfig, "--controllers", controller, "--leader-elect=false", "--secure-port", "0",
		"--feature-gates", gates)
	command.Stderr = &log
	if err := command.Start(); err != nil {
		c.t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		_ = command.Process.Kill()
		_ = command.Wait() // it says that the process was killed
		if c.t.Failed() {
			c.t.Logf("kube-controller-manager:\n%s", log.Bytes())
		}
	})
	c.t.Cleanup(stop)
	return stop
}

// uids returns the UIDs of Workloads and PodGroups.
func (c *cluster) uids() map[string]string {
	out := map[string]string{}
	for _, o := range read[struct {
		Items []metav1.PartialObjectMetadata
	}](c, "workloads").Items {
		out["workload "+o.Name] = string(o.UID)
	}
	for _, o := range read[struct {
		Items []metav1.PartialObjectMetadata
	}](c, "podgroups").Items {
		out["podgroup "+o.Name] = string(o.UID)
	}
	return out
}

// gangObjects returns the specs and owners of the Workload and the PodGroup of a Job, without what
// must differ between two Jobs.
func (c *cluster) gangObjects(name string) (all []any) {
	c.t.Helper()
	j, err := client.For[*batchv1.Job](c.Client).Get(c.t.Context(), c.key(name))
	if err != nil {
		c.t.Fatal(err)
	}
	workloads, _, err := client.For[*schedulingv1beta1.Workload](c.Client).List(c.t.Context(), client.Selection{Namespace: c.namespace})
	if err != nil {
		c.t.Fatal(err)
	}
	groups, _, err := client.For[*schedulingv1beta1.PodGroup](c.Client).List(c.t.Context(), client.Selection{Namespace: c.namespace})
	if err != nil {
		c.t.Fatal(err)
	}
	for _, w := range workloads {
		if !metav1.IsControlledBy(w, j) {
			continue
		}
		same := strings.NewReplacer(w.Name, "WORKLOAD", string(w.UID), "UID", string(j.UID), "JOB", name, "NAME")
		all = append(all, same.Replace(c.json([]any{w.OwnerReferences, w.Spec})))
		for _, g := range groups {
			if slices.ContainsFunc(g.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == w.UID }) {
				text := strings.Split(g.Name, "-")
				all = append(all, same.Replace(strings.TrimSuffix(g.Name, text[len(text)-1])+c.json([]any{g.OwnerReferences, g.Finalizers, g.Spec})))
			}
		}
	}
	return all
}

func (c *cluster) json(o any) string {
	c.t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}
