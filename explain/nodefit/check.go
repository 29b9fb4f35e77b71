// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodefit

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	requests "k8s.io/component-helpers/resource"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// Rules as the scheduler names them in its message. A lack of a resource is "Insufficient RESOURCE".
// Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins, the reasons of the plugins.
const (
	Unschedulable  = "node(s) were unschedulable"
	Tainted        = "node(s) had untolerated taint(s)"
	OtherAffinity  = "node(s) didn't match Pod's node affinity/selector"
	PortsTaken     = "node(s) didn't have free ports for the requested pod ports"
	TooManyPods    = "Too many pods"
	insufficient   = "Insufficient "
	VolumeAffinity = "node(s) didn't match PersistentVolume's node affinity"
)

// Node is a Node with the Pods that the scheduler has assigned to it.
type Node struct {
	Node *corev1.Node
	// Pods are those of all namespaces. Pods that have ended may be among them.
	Pods []*corev1.Pod
	// PodsNotKnown is set if Pods is not complete. Rules about them are then only decided if the Node alone decides.
	PodsNotKnown bool
}

// Volume is the node affinity of a volume to which a claim of the Pod is bound.
type Volume struct {
	Claim    string
	Affinity *corev1.VolumeNodeAffinity
}

// Failure is a rule that a Node fails.
type Failure struct {
	Rule string // as the scheduler's message counts it
	Text string // with names and figures
	// Of is the kind of the objects that decide it besides the Node and the Pod: Pod, PersistentVolume, or empty.
	Of string
	by plugin
}

// plugin is a filter of the scheduler, which stops at the first one that refuses a Node.
// Source: k8s.io/kubernetes/pkg/scheduler/apis/config/v1, getDefaultPlugins.
type plugin int

const (
	nodeUnschedulable plugin = iota
	taintToleration
	nodeAffinity
	nodePorts
	nodeResourcesFit
	volumeBinding
)

// Result is what is known of a Node for a Pod.
type Result struct {
	// Fails are the rules that the Node fails, in the scheduler's order.
	Fails []Failure
	// Undecided is set if further rules could not be checked because the Pods of the Node are not known.
	Undecided bool
}

// Counted returns the rules that the scheduler counts for the Node: those of the first filter that refuses it. certain is false if the Pods
// of the Node, which are not known, could add one.
func (r *Result) Counted() (rules []string, certain bool) {
	for _, f := range r.Fails {
		if f.by == r.Fails[0].by {
			rules = append(rules, f.Rule)
		}
	}
	return rules, !r.Undecided || len(r.Fails) > 0 && r.Fails[0].by < nodePorts
}

// Check returns the rules that a Node fails for a Pod.
func Check(pod *corev1.Pod, n Node, volumes ...Volume) Result {
	var r Result
	r.unschedulable(pod, n.Node)
	r.taints(pod, n.Node)
	r.affinity(pod, n.Node)
	running := slices.DeleteFunc(slices.Clone(n.Pods), func(p *corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	r.ports(pod, running)
	r.resources(pod, n.Node, running, n.PodsNotKnown)
	r.volumes(n.Node, volumes)
	r.Undecided = n.PodsNotKnown
	return r
}

func (r *Result) fails(by plugin, rule, format string, args ...any) {
	r.Fails = append(r.Fails, Failure{Rule: rule, Text: fmt.Sprintf(format, args...), by: by})
}

// failsBecauseOf is fails for a rule that other objects decide as well.
func (r *Result) failsBecauseOf(kind string, by plugin, rule, format string, args ...any) {
	r.fails(by, rule, format, args...)
	r.Fails[len(r.Fails)-1].Of = kind
}

// Kinds of Failure.Of.
const (
	otherPods = "Pod"
	ofVolume  = "PersistentVolume"
)

// tolerates reports whether a Pod tolerates a taint. The comparison of numbers follows servers that accept such tolerations.
func tolerates(pod *corev1.Pod, taint *corev1.Taint) bool {
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.ToleratesTaint(klog.Logger{}, taint, true) })
}

// Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeunschedulable.
func (r *Result) unschedulable(pod *corev1.Pod, node *corev1.Node) {
	taint := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if node.Spec.Unschedulable && !tolerates(pod, &taint) {
		r.fails(nodeUnschedulable, Unschedulable, "it is cordoned (spec.unschedulable)")
	}
}

func (r *Result) taints(pod *corev1.Pod, node *corev1.Node) {
	var refused []string
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		hard := taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
		if cordon := taint.Key == corev1.TaintNodeUnschedulable && node.Spec.Unschedulable; hard && !cordon && !tolerates(pod, taint) {
			refused = append(refused, taint.ToString())
		}
	}
	switch len(refused) {
	case 0:
	case 1:
		r.fails(taintToleration, Tainted, "the Pod does not tolerate its taint %s", refused[0])
	default:
		r.fails(taintToleration, Tainted, "the Pod does not tolerate its taints %s", strings.Join(refused, ", "))
	}
}

func (r *Result) affinity(pod *corev1.Pod, node *corev1.Node) {
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err == nil && matches {
		return
	}
	var missing []string
	for _, name := range slices.Sorted(keys(pod.Spec.NodeSelector)) {
		if value, has := node.Labels[name]; !has || value != pod.Spec.NodeSelector[name] {
			missing = append(missing, name+"="+pod.Spec.NodeSelector[name])
		}
	}
	switch len(missing) {
	case 0:
		r.fails(nodeAffinity, OtherAffinity, "it matches no term of the Pod's required node affinity%s", requiredLabels(pod))
	case 1:
		r.fails(nodeAffinity, OtherAffinity, "it does not have the label %s of the Pod's nodeSelector", missing[0])
	default:
		r.fails(nodeAffinity, OtherAffinity, "it does not have the labels %s of the Pod's nodeSelector", strings.Join(missing, ", "))
	}
}

// mostTerms is how many requirements of an affinity are named.
const mostTerms = 4

// requiredLabels names what a Pod's node affinity requires.
func requiredLabels(pod *corev1.Pod) string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil || pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	var all []string
	for _, term := range pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		var parts []string
		for _, e := range append(slices.Clone(term.MatchExpressions), term.MatchFields...) {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Key, e.Operator, strings.Join(e.Values, ","))))
		}
		all = append(all, strings.Join(parts, " and "))
	}
	if len(all) > mostTerms {
		all = append(all[:mostTerms], fmt.Sprintf("%d more", len(all)-mostTerms))
	}
	return " (" + strings.Join(all, "; or ") + ")"
}

// Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeports, and HostPortInfo of pkg/scheduler/framework.
func (r *Result) ports(pod *corev1.Pod, running []*corev1.Pod) {
	var taken []string
	for _, want := range hostPorts(pod) {
		if slices.ContainsFunc(running, func(p *corev1.Pod) bool { return slices.ContainsFunc(hostPorts(p), want.conflicts) }) {
			taken = append(taken, want.String())
		}
	}
	if len(taken) > 0 {
		r.failsBecauseOf(otherPods, nodePorts, PortsTaken, "another Pod has its host port %s", strings.Join(taken, ", "))
	}
}

type hostPort struct {
	protocol corev1.Protocol
	address  string
	number   int32
}

const anyAddress = "0.0.0.0"

func (p hostPort) conflicts(other hostPort) bool {
	return p.protocol == other.protocol && p.number == other.number && (p.address == other.address || p.address == anyAddress || other.address == anyAddress)
}

func (p hostPort) String() string {
	if p.address == anyAddress {
		return fmt.Sprintf("%d/%s", p.number, p.protocol)
	}
	return fmt.Sprintf("%s:%d/%s", p.address, p.number, p.protocol)
}

// hostPorts returns the ports of the Node that the containers of a Pod take, those of sidecars too.
func hostPorts(pod *corev1.Pod) (all []hostPort) {
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort <= 0 {
				continue
			}
			want := hostPort{p.Protocol, p.HostIP, p.HostPort}
			if want.protocol == "" {
				want.protocol = corev1.ProtocolTCP
			}
			if want.address == "" {
				want.address = anyAddress
			}
			all = append(all, want)
		}
	}
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c)
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	return all
}

// Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources, fitsRequest.
func (r *Result) resources(pod *corev1.Pod, node *corev1.Node, running []*corev1.Pod, partly bool) {
	if allowed := node.Status.Allocatable.Pods().Value(); int64(len(running))+1 > allowed {
		r.failsBecauseOf(otherPods, nodeResourcesFit, TooManyPods, "it has %d of %d Pods", len(running), allowed)
	}
	asked := requests.PodRequests(pod, requests.PodResourcesOptions{})
	used := corev1.ResourceList{}
	for _, p := range running {
		for name, amount := range requests.PodRequests(p, requests.PodResourcesOptions{UseStatusResources: true}) {
			sum := used[name]
			sum.Add(amount)
			used[name] = sum
		}
	}
	for _, name := range ordered(asked) {
		want, of, taken := asked[name], node.Status.Allocatable[name], used[name]
		left := of.DeepCopy()
		left.Sub(taken)
		if want.IsZero() || want.Cmp(left) <= 0 {
			continue
		}
		if left.Sign() < 0 {
			left = resource.Quantity{}
		}
		why := fmt.Sprintf("the Pod asks for %[2]s of %[1]s, and %[3]s of %[4]s are left", name, amount(name, want), amount(name, left), amount(name, of))
		kind := ""
		switch {
		case of.IsZero():
			why = fmt.Sprintf("the Pod asks for %[2]s of %[1]s, and the Node has none", name, amount(name, want))
		case want.Cmp(of) > 0:
			why = fmt.Sprintf("the Pod asks for %[2]s of %[1]s, and the Node has %[3]s in all", name, amount(name, want), amount(name, of))
		case partly:
			why += " at most"
			kind = otherPods
		default:
			kind = otherPods
		}
		r.failsBecauseOf(kind, nodeResourcesFit, insufficient+string(name), "%s", why)
	}
}

// ordered returns the resources as the scheduler checks them: its own kinds, then extended ones by name.
func ordered(asked corev1.ResourceList) (names []corev1.ResourceName) {
	first := []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage}
	for _, name := range first {
		if _, has := asked[name]; has {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(keys(asked)) {
		if !slices.Contains(first, name) && name != corev1.ResourcePods {
			names = append(names, name)
		}
	}
	return names
}

// Source: k8s.io/kubernetes/pkg/scheduler/framework/plugins/volumebinding, checkBoundClaims.
func (r *Result) volumes(node *corev1.Node, volumes []Volume) {
	var elsewhere []string
	for _, v := range volumes {
		if v.Affinity == nil || v.Affinity.Required == nil {
			continue
		}
		terms, err := nodeaffinity.NewNodeSelector(v.Affinity.Required)
		if err != nil || !terms.Match(node) {
			elsewhere = append(elsewhere, v.Claim)
		}
	}
	switch len(elsewhere) {
	case 0:
	case 1:
		r.failsBecauseOf(ofVolume, volumeBinding, VolumeAffinity, "the volume of the claim %s is not for this Node", elsewhere[0])
	default:
		r.failsBecauseOf(ofVolume, volumeBinding, VolumeAffinity, "the volumes of the claims %s are not for this Node", strings.Join(elsewhere, ", "))
	}
}
