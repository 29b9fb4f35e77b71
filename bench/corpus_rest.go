// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// node returns a Node as a cloud makes it, with the images that its Pods left.
func node(i int) *corev1.Node {
	own := diceFor("nodes", i)
	zone, began := own.of(regions...), own.created()
	name := nodeName(i)
	instance := own.of("m6i.2xlarge", "m6i.4xlarge", "c6i.4xlarge", "r6i.2xlarge")
	amounts := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
			corev1.ResourcePods: resource.MustParse("110"), corev1.ResourceEphemeralStorage: resource.MustParse("104845292Ki"),
		}
	}
	beat := at(began, 86400+own.IntN(86400))
	say := func(kind, reason, message string, status corev1.ConditionStatus) corev1.NodeCondition {
		return corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: beat, LastTransitionTime: at(began, 30)}
	}
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: own.uid(), ResourceVersion: version(i), CreationTimestamp: at(began, 0),
			Labels: map[string]string{
				"beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
				"kubernetes.io/hostname": name, "node.kubernetes.io/instance-type": instance, "beta.kubernetes.io/instance-type": instance,
				"topology.kubernetes.io/region": "eu-west-1", "topology.kubernetes.io/zone": zone, "topology.ebs.csi.aws.com/zone": zone,
				"team": own.of(teams...), "nodepool": own.of("general", "batch", "ingress"),
			},
			Annotations: map[string]string{
				"csi.volume.kubernetes.io/nodeid":                        `{"ebs.csi.aws.com":"i-` + own.hex(17) + `"}`,
				"volumes.kubernetes.io/controller-managed-attach-detach": "true",
			},
		},
		Spec: corev1.NodeSpec{
			PodCIDR: fmt.Sprintf("100.%d.%d.0/24", i>>8&0xff, i&0xff), PodCIDRs: []string{fmt.Sprintf("100.%d.%d.0/24", i>>8&0xff, i&0xff)},
			ProviderID: "aws:///" + zone + "/i-" + own.hex(17),
		},
		Status: corev1.NodeStatus{
			Capacity: amounts("16", fmt.Sprint(65000000+own.IntN(99999), "Ki")), Allocatable: amounts("15890m", fmt.Sprint(64000000+own.IntN(99999), "Ki")),
			Conditions: []corev1.NodeCondition{
				say("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available", corev1.ConditionFalse),
				say("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure", corev1.ConditionFalse),
				say("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available", corev1.ConditionFalse),
				say("Ready", "KubeletReady", "kubelet is posting ready status", corev1.ConditionTrue),
			},
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("172.16.%d.%d", i>>8&0xff, i&0xff)}, {Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalDNS, Address: name},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 10250}},
			NodeInfo: corev1.NodeSystemInfo{
				MachineID: own.hex(32), SystemUUID: string(own.uid()), BootID: string(own.uid()), KernelVersion: "6.12.40-64.114.amzn2023.x86_64",
				OSImage: "Amazon Linux 2023.9", ContainerRuntimeVersion: "containerd://2.1.4", KubeletVersion: "v1.36.3", OperatingSystem: "linux", Architecture: "amd64",
			},
		},
	}
	for range 40 { // of some 300 images that the cluster runs
		image := diceFor("images", own.IntN(300))
		repository := "registry.example.com/" + image.of(teams...) + "/" + image.of(services...)
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names:     []string{repository + "@sha256:" + image.hex(64), fmt.Sprintf("%s:v1.%d.%d", repository, image.IntN(30), image.IntN(10))},
			SizeBytes: int64(20e6 + image.IntN(400e6)),
		})
	}
	var heartbeat []string
	for _, c := range n.Status.Conditions {
		for _, leaf := range []string{"lastHeartbeatTime", "lastTransitionTime", "message", "reason", "status"} {
			heartbeat = append(heartbeat, `status conditions k:{"type":"`+string(c.Type)+`"} `+leaf)
		}
	}
	var labels []string
	for label := range n.Labels {
		labels = append(labels, "metadata labels "+label)
	}
	n.ManagedFields = []metav1.ManagedFieldsEntry{
		fields("kubelet", "", at(began, 0), append(labels, "spec providerID")...),
		fields("kubelet", "status", beat, append(heartbeat, "status images", "status allocatable memory", "status capacity memory")...),
	}
	return n
}

// configMap returns an application's configuration, as text that people write.
func configMap(i int) *corev1.ConfigMap {
	own := diceFor("configmaps", i)
	team := own.of(teams...)
	app := team + "-" + own.of(services...)
	began := own.created()
	var config strings.Builder
	fmt.Fprintf(&config, "server:\n  listen: 0.0.0.0:%d\n  readTimeout: %ds\n  writeTimeout: %ds\n", 8000+own.IntN(1000), 5+own.IntN(20), 5+own.IntN(20))
	fmt.Fprintf(&config, "database:\n  host: %s-postgres.databases.svc.cluster.local\n  name: %s\n  maxConnections: %d\n", team, app, 10+own.IntN(90))
	for range 12 + own.IntN(12) {
		fmt.Fprintf(&config, "%s-%s:\n  url: http://%s-%s.%s.svc.cluster.local:8080\n  retries: %d\n  timeout: %dms\n",
			own.of(teams...), own.of(services...), own.of(teams...), own.of(services...), own.namespace(), own.IntN(6), 100*own.IntN(50))
	}
	return &corev1.ConfigMap{
		ObjectMeta: configMapMeta(own, app+"-config-"+own.text(suffixLetters, 10), team, app, began, i),
		Data: map[string]string{
			"config.yaml": config.String(),
			"features":    fmt.Sprintf("newCheckout=%t\nfastPath=%t\nsampling=0.%d\n", own.IntN(2) == 0, own.IntN(2) == 0, own.IntN(99)),
		},
	}
}

// randomConfigMap returns one that holds what is compressed or encrypted already,
// such as a release of Helm, as base64.
func randomConfigMap(i int) *corev1.ConfigMap {
	own := diceFor("random", i)
	team := own.of(teams...)
	app := team + "-" + own.of(services...)
	secret := make([]byte, 3000)
	for i := range secret {
		secret[i] = byte(own.Uint32())
	}
	return &corev1.ConfigMap{
		ObjectMeta: configMapMeta(own, "release."+app+"."+own.text(suffixLetters, 8), team, app, own.created(), i),
		Data:       map[string]string{"release": base64.StdEncoding.EncodeToString(secret)},
	}
}

func configMapMeta(own dice, name, team, app string, began time.Time, i int) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: own.namespace(), UID: own.uid(), ResourceVersion: version(i), CreationTimestamp: at(began, 0),
		Labels: map[string]string{"app": app, "team": team, "app.kubernetes.io/managed-by": "Helm"},
		ManagedFields: []metav1.ManagedFieldsEntry{
			fields("helm", "", at(began, 0), "data .", "data config.yaml", "data features", "metadata labels .",
				"metadata labels app", "metadata labels team", "metadata labels app.kubernetes.io/managed-by"),
		},
	}
}

// certificate returns a custom resource. Kinds that a cluster's users define
// travel as JSON only.
func certificate(i int) *unstructured.Unstructured {
	own := diceFor("certificates", i)
	team := own.of(teams...)
	app := team + "-" + own.of(services...)
	host := app + "-" + own.text(suffixLetters, 6)
	began := own.created()
	stamp := func(seconds int) string { return at(began, seconds).UTC().Format(time.RFC3339) }
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "certs.example.com/v1", "kind": "Certificate",
		"spec": map[string]any{
			"secretName": host + "-tls", "duration": "2160h0m0s", "renewBefore": "360h0m0s", "revisionHistoryLimit": int64(3),
			"dnsNames":   []any{host + ".example.com", host + ".eu.example.com", "www." + host + ".example.com"},
			"privateKey": map[string]any{"algorithm": "ECDSA", "size": int64(256), "rotationPolicy": "Always"},
			"issuerRef":  map[string]any{"group": "certs.example.com", "kind": "ClusterIssuer", "name": own.of("public", "internal")},
			"usages":     []any{"digital signature", "key encipherment", "server auth"},
		},
		"status": map[string]any{
			"revision": int64(1 + own.IntN(20)), "notBefore": stamp(0), "notAfter": stamp(90 * 86400), "renewalTime": stamp(75 * 86400),
			"fingerprint": own.hex(64),
			"conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Ready", "message": "Certificate is up to date and has not expired",
				"lastTransitionTime": stamp(40), "observedGeneration": int64(1),
			}},
		},
	}}
	u.SetName(host)
	u.SetNamespace(own.namespace())
	u.SetUID(own.uid())
	u.SetResourceVersion(version(i))
	u.SetGeneration(1)
	u.SetCreationTimestamp(at(began, 0))
	u.SetLabels(map[string]string{"app": app, "team": team, "app.kubernetes.io/managed-by": "Helm"})
	u.SetAnnotations(map[string]string{"certs.example.com/request": string(own.uid())})
	u.SetManagedFields([]metav1.ManagedFieldsEntry{
		fields("helm", "", at(began, 0), "metadata labels .", "metadata labels app", "metadata labels team", "spec .", "spec dnsNames", "spec duration",
			"spec issuerRef .", "spec issuerRef group", "spec issuerRef kind", "spec issuerRef name", "spec privateKey .", "spec privateKey algorithm",
			"spec privateKey rotationPolicy", "spec privateKey size", "spec renewBefore", "spec revisionHistoryLimit", "spec secretName", "spec usages"),
		fields("cert-controller", "status", at(began, 40), `status conditions k:{"type":"Ready"} .`, `status conditions k:{"type":"Ready"} lastTransitionTime`,
			`status conditions k:{"type":"Ready"} message`, `status conditions k:{"type":"Ready"} reason`, `status conditions k:{"type":"Ready"} status`,
			"status fingerprint", "status notAfter", "status notBefore", "status renewalTime", "status revision"),
	})
	return u
}
