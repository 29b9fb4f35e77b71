// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/attachable"
)

// ManagedLabel, with the value "true", marks the Nodes that are simulated. A Node
// without it is left alone, whatever its name.
const ManagedLabel = Prefix + "managed"

// NodeSwitch is the annotation of a Node that says how the Node behaves. With the
// value Silent it stops all it does, as if its machine had lost its power: no
// heartbeats, and its Pods stand still. It comes back when the annotation goes.
const (
	NodeSwitch = Prefix + "node"
	Silent     = "silent"
)

// Times of the kubelet's heartbeats: leaseDuration is its --node-lease-duration-
// seconds, renewed when a quarter of it is over; statusReport its
// nodeStatusReportFrequency, for a status in which nothing has changed.
const (
	leaseDuration = 40 * time.Second
	leaseRenewal  = leaseDuration / 4
	statusReport  = 5 * time.Minute
)

const (
	namePrefix = "node-"
	region     = "sim-1"
)

var zones = []string{region + "a", region + "b", region + "c"}

func nodeName(i int) string { return namePrefix + strconv.Itoa(i) }

// nodeIndex returns the number in the name of a simulated Node.
func nodeIndex(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, namePrefix)
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(digits)
	return i, err == nil && i >= 0 && nodeName(i) == name
}

// simulated reports whether the Node is simulated here.
func simulated(node *corev1.Node) bool {
	_, ours := nodeIndex(node.Name)
	return ours && node.Labels[ManagedLabel] == "true"
}

// silent reports whether an annotation makes the Node silent, and what is wrong with the
// annotation if it cannot be read.
func silent(node *corev1.Node) (is bool, problem string) {
	switch value, said := node.Annotations[NodeSwitch]; {
	case !said:
		return false, ""
	case value == Silent:
		return true, ""
	default:
		return false, fmt.Sprintf("annotation %s is ignored: %q is not %q", NodeSwitch, value, Silent)
	}
}

// newNode returns the i-th Node as it is created, without a status.
func newNode(i int, opts Options) (*corev1.Node, error) {
	name := nodeName(i)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Annotations: map[string]string{attachable.Annotation: "true"},
			Labels: map[string]string{
				ManagedLabel:                   "true",
				corev1.LabelHostname:           name,
				corev1.LabelOSStable:           "linux",
				corev1.LabelArchStable:         "amd64",
				corev1.LabelInstanceTypeStable: "simulated",
				corev1.LabelTopologyRegion:     region,
				corev1.LabelTopologyZone:       zones[i%len(zones)],
			},
		},
		Spec: corev1.NodeSpec{ProviderID: "sim://" + name},
	}
	if opts.NoPodCIDRs {
		return node, nil
	}
	for _, from := range defaultPodCIDRs {
		piece, err := podRange(from, i, opts.Pods)
		if err != nil {
			return nil, err
		}
		node.Spec.PodCIDRs = append(node.Spec.PodCIDRs, piece.String())
	}
	node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
	return node, nil
}

// kubeletInfo is what all simulated kubelets have in common.
type kubeletInfo struct {
	version string
	port    int32 // of their server; 0 if there is none
	claims  bool  // the API server serves ResourceClaims
}

// nodeStatus returns the status that the Node should have now, or nil if the one
// it has will do.
func nodeStatus(node *corev1.Node, opts Options, about kubeletInfo, now time.Time) *corev1.NodeStatus {
	status := node.Status.DeepCopy()
	status.Capacity = opts.capacity()
	status.Allocatable = status.Capacity.DeepCopy()
	status.Addresses = []corev1.NodeAddress{}
	if i, ok := nodeIndex(node.Name); ok {
		for _, from := range defaultNodeCIDRs {
			// 10 leaves room for a network, its gateway and what people put first.
			address := plus(from.Addr(), big.NewInt(int64(i)+10)).String()
			status.Addresses = append(status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: address})
		}
	}
	status.Addresses = append(status.Addresses, corev1.NodeAddress{Type: corev1.NodeHostName, Address: node.Name})
	if about.port != 0 {
		status.Addresses = append(status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: serverAddress})
	}
	status.DaemonEndpoints.KubeletEndpoint.Port = about.port
	status.NodeInfo = corev1.NodeSystemInfo{
		MachineID:               digest("machine/" + node.Name)[:32],
		SystemUUID:              digest("system/" + node.Name)[:32],
		BootID:                  digest("boot/" + string(node.UID))[:32],
		KernelVersion:           "simulated",
		OSImage:                 "Setpoint simulated node",
		ContainerRuntimeVersion: "sim://1.0.0",
		KubeletVersion:          about.version,
		Architecture:            "amd64",
		OperatingSystem:         "linux",
	}
	for _, c := range healthy {
		setNodeCondition(status, c, now)
	}
	changed := !apiequality.Semantic.DeepEqual(&node.Status, status)
	if !changed && now.Before(lastHeartbeat(node).Add(statusReport)) {
		return nil
	}
	for i := range status.Conditions {
		status.Conditions[i].LastHeartbeatTime = metav1.NewTime(now)
	}
	return status
}

// healthy are the conditions of a Node in good health, in the kubelet's words.
var healthy = []corev1.NodeCondition{
	{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
	{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
	{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
	{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"},
}

func setNodeCondition(status *corev1.NodeStatus, want corev1.NodeCondition, now time.Time) {
	for i := range status.Conditions {
		c := &status.Conditions[i]
		if c.Type != want.Type {
			continue
		}
		if c.Status != want.Status {
			c.LastTransitionTime = metav1.NewTime(now)
		}
		c.Status, c.Reason, c.Message = want.Status, want.Reason, want.Message
		return
	}
	want.LastTransitionTime = metav1.NewTime(now)
	status.Conditions = append(status.Conditions, want)
}

func lastHeartbeat(node *corev1.Node) time.Time {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.LastHeartbeatTime.Time
		}
	}
	return time.Time{}
}

// hostIPs returns the addresses of the Node, the first of each family.
func hostIPs(node *corev1.Node) []string {
	var out []string
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && len(out) < 2 {
			out = append(out, a.Address)
		}
	}
	return out
}
