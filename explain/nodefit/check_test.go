// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodefit_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/explain/nodefit"
)

func amounts(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i+1 < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func node(change func(*corev1.Node)) nodefit.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"disk": "hdd", "zone": "a"}}}
	n.Status.Allocatable = amounts("cpu", "4", "memory", "8Gi", "pods", "3", "example.com/gpu", "2")
	if change != nil {
		change(n)
	}
	return nodefit.Node{Node: n}
}

func pod(requests corev1.ResourceList, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: requests}}}}}
	if change != nil {
		change(p)
	}
	return p
}

func hosting(address string, port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostIP: address, HostPort: port}}
	}
}

// The rules that a Node fails have the figures, in the scheduler's order.
func TestTheRulesThatANodeFails(t *testing.T) {
	inZone := func(zone string) *corev1.NodeSelector {
		return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}},
		}}}}
	}
	with := func(n nodefit.Node, pods ...*corev1.Pod) nodefit.Node { n.Pods = pods; return n }
	unread := func(n nodefit.Node) nodefit.Node { n.PodsNotKnown = true; return n }
	ended := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	small := amounts("cpu", "1")
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		node    nodefit.Node
		volumes []nodefit.Volume
		want    string // RULE: TEXT, one a line
	}{
		"nothing": {pod(small, nil), node(nil), nil, ""},
		"cordoned": {pod(small, nil), node(func(n *corev1.Node) {
			n.Spec.Unschedulable = true
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
		}), nil, "node(s) were unschedulable: it is cordoned (spec.unschedulable)"},
		"cordoned, and tolerated": {pod(small, func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
		}), node(func(n *corev1.Node) { n.Spec.Unschedulable = true }), nil, ""},
		"a taint": {pod(small, nil), node(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
		}), nil, "node(s) had untolerated taint(s): the Pod does not tolerate its taint dedicated=db:NoSchedule"},
		"two taints, one tolerated": {pod(small, func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpEqual, Value: "1"}}
		}), node(func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "a", Value: "1", Effect: corev1.TaintEffectNoSchedule}, {Key: "b", Effect: corev1.TaintEffectNoExecute}}
		}), nil, "node(s) had untolerated taint(s): the Pod does not tolerate its taint b:NoExecute"},
		"a nodeSelector": {pod(small, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd", "zone": "a"} }), node(nil), nil,
			"node(s) didn't match Pod's node affinity/selector: it does not have the label disk=ssd of the Pod's nodeSelector"},
		"an affinity": {pod(small, func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: inZone("b")}}
		}), node(nil), nil, "node(s) didn't match Pod's node affinity/selector: it matches no term of the Pod's required node affinity (zone In b)"},
		"a host port": {pod(small, hosting("", 80)), with(node(nil), pod(nil, hosting("10.0.0.1", 80))), nil,
			"node(s) didn't have free ports for the requested pod ports: another Pod has its host port 80/TCP"},
		"a host port at another address":      {pod(small, hosting("10.0.0.2", 80)), with(node(nil), pod(nil, hosting("10.0.0.1", 80))), nil, ""},
		"a host port of a Pod that has ended": {pod(small, hosting("", 80)), with(node(nil), pod(nil, func(p *corev1.Pod) { hosting("", 80)(p); ended(p) })), nil, ""},
		"more than the Node has": {pod(amounts("cpu", "1000", "memory", "9Gi"), nil), node(nil), nil,
			"Insufficient cpu: the Pod asks for 1k of cpu, and the Node has 4 in all\nInsufficient memory: the Pod asks for 9Gi of memory, and the Node has 8Gi in all"},
		"more than is left": {pod(amounts("cpu", "1500m", "memory", "1Gi"), nil), with(node(nil), pod(amounts("cpu", "2", "memory", "512Mi"), nil), pod(amounts("cpu", "1"), nil)), nil,
			"Insufficient cpu: the Pod asks for 1500m of cpu, and 1 of 4 are left"},
		"what Pods that have ended asked for is left": {pod(amounts("cpu", "3"), nil), with(node(nil), pod(amounts("cpu", "2"), ended)), nil, ""},
		"no such device": {pod(amounts("example.com/fpga", "1"), nil), node(nil), nil,
			"Insufficient example.com/fpga: the Pod asks for 1 of example.com/fpga, and the Node has none"},
		"devices in use": {pod(amounts("example.com/gpu", "1"), nil), with(node(nil), pod(amounts("example.com/gpu", "2"), nil)), nil,
			"Insufficient example.com/gpu: the Pod asks for 1 of example.com/gpu, and 0 of 2 are left"},
		"too many Pods": {pod(nil, nil), with(node(nil), pod(nil, nil), pod(nil, nil), pod(nil, nil)), nil, "Too many pods: it has 3 of 3 Pods"},
		"a volume elsewhere": {pod(small, nil), node(nil), []nodefit.Volume{{Claim: "data", Affinity: &corev1.VolumeNodeAffinity{Required: inZone("b")}}, {Claim: "here", Affinity: &corev1.VolumeNodeAffinity{Required: inZone("a")}}},
			"node(s) didn't match PersistentVolume's node affinity: the volume of the claim data is not for this Node"},
		"several rules": {pod(amounts("cpu", "5"), func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }), unread(node(func(n *corev1.Node) { n.Spec.Unschedulable = true })), nil,
			"node(s) were unschedulable: it is cordoned (spec.unschedulable)\n" +
				"node(s) didn't match Pod's node affinity/selector: it does not have the label disk=ssd of the Pod's nodeSelector\n" +
				"Insufficient cpu: the Pod asks for 5 of cpu, and the Node has 4 in all"},
	} {
		t.Run(name, func(t *testing.T) {
			result := nodefit.Check(c.pod, c.node, c.volumes...)
			var got []string
			for _, f := range result.Fails {
				got = append(got, f.Rule+": "+f.Text)
				if !nodefit.Decides(f.Rule) {
					t.Errorf("the package does not decide its own rule %q", f.Rule)
				}
			}
			if text := strings.Join(got, "\n"); text != c.want {
				t.Errorf("the Node fails\n%s\nwant\n%s", text, c.want)
			}
			if rules, _ := result.Counted(); len(result.Fails) > 0 && (len(rules) == 0 || rules[0] != result.Fails[0].Rule) {
				t.Errorf("counted are %q, want the first rule", rules)
			}
		})
	}
}

// The scheduler counts all resources that are missing, and otherwise the first rule alone.
func TestWhatTheSchedulerCounts(t *testing.T) {
	big := pod(amounts("cpu", "5", "memory", "9Gi"), nil)
	n := node(nil)
	n.PodsNotKnown = true
	of := func(n nodefit.Node) (string, bool) {
		result := nodefit.Check(big, n)
		rules, certain := result.Counted()
		return strings.Join(rules, ", "), certain
	}
	if rules, certain := of(node(nil)); rules != "Insufficient cpu, Insufficient memory" || !certain {
		t.Errorf("counted is %q, %v", rules, certain)
	}
	if rules, certain := of(n); rules != "Insufficient cpu, Insufficient memory" || certain {
		t.Errorf("without the Pods of the Node, counted is %q, %v: another Pod may have a port", rules, certain)
	}
	n.Node.Spec.Unschedulable = true
	if rules, certain := of(n); rules != nodefit.Unschedulable || !certain {
		t.Errorf("of a cordoned Node, counted is %q, %v", rules, certain)
	}
}

// The scheduler's message agrees with the Nodes, or the difference is said.
func TestTheMessageIsComparedWithTheNodes(t *testing.T) {
	cordoned := nodefit.Check(pod(nil, nil), node(func(n *corev1.Node) { n.Spec.Unschedulable = true }))
	lacks := nodefit.Check(pod(amounts("cpu", "5"), nil), node(nil))
	open := nodefit.Result{Undecided: true}
	for name, c := range map[string]struct {
		message string
		all     []nodefit.Result
		want    string
	}{
		"they agree": {"0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
			[]nodefit.Result{cordoned, lacks}, ""},
		"another count": {"0/2 nodes are available: 2 Insufficient cpu.", []nodefit.Result{cordoned, lacks},
			`the scheduler counts 2 of "Insufficient cpu", and by their state it is 1; the scheduler counts 0 of "node(s) were unschedulable", and by their state it is 1`},
		"a Node more":      {"0/1 nodes are available: 1 Insufficient cpu.", []nodefit.Result{lacks, cordoned}, `the scheduler counts 1 Nodes, and there are 2; the scheduler counts 0 of "node(s) were unschedulable", and by their state it is 1`},
		"an open Node":     {"0/2 nodes are available: 2 Insufficient cpu.", []nodefit.Result{lacks, open}, ""},
		"too many for it":  {"0/2 nodes are available: 3 Insufficient cpu.", []nodefit.Result{lacks, open}, `the scheduler counts 3 of "Insufficient cpu", and by their state it is 1 to 2`},
		"a rule elsewhere": {"0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints.", []nodefit.Result{lacks, {}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			counts, ok := nodefit.Parse(c.message)
			if !ok {
				t.Fatalf("%q is not parsed", c.message)
			}
			if got := strings.Join(counts.Compare(c.all), "; "); got != c.want {
				t.Errorf("the differences are\n%s\nwant\n%s", got, c.want)
			}
		})
	}
	for _, text := range []string{"", "0/2 nodes are available", "0/2 nodes are available: ", "no nodes available to schedule pods", "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.", "0/x nodes are available: 1 a."} {
		if counts, ok := nodefit.Parse(text); ok {
			t.Errorf("%q is parsed as %+v", text, counts)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable. preemption: none")
	f.Add("0/99999999999999999999 nodes are available: 1 a")
	f.Fuzz(func(t *testing.T, message string) {
		counts, ok := nodefit.Parse(message)
		if ok && len(counts.Of) == 0 {
			t.Errorf("%q has no counts", message)
		}
		counts.Compare([]nodefit.Result{{}, {Undecided: true}})
		counts.Others()
	})
}
