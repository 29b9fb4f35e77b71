// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package servicecidr

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/object"
)

// Codes of the reasons why a ServiceCIDR that is being deleted stays.
const (
	codeInUse = "AddressesInUse"
	codeGrace = "DeletionNotHeardOf"
)

// reasonError is the reason of the Event that a condition could not be written.
// Source: k8s.io/kubernetes/pkg/controller/servicecidrs.
const reasonError = "KubernetesServiceCIDRError"

// because states a reason.
func because(ctx context.Context, code, text, ends string, params ...any) {
	controller.Because(ctx, controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends})
}

// ready is the condition of a ServiceCIDR whose addresses may be allocated. Upstream's has no
// reason.
func ready() metav1.Condition {
	return metav1.Condition{Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Message: "Kubernetes Service CIDR is ready"}
}

// terminating is the condition of a ServiceCIDR that cannot go, in upstream's words with the
// addresses after them.
func terminating(addresses string) metav1.Condition {
	return metav1.Condition{
		Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionFalse, Reason: networkingv1.ServiceCIDRReasonTerminating,
		Message: "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR: " + addresses,
	}
}

// mostNamed bounds the addresses in a condition.
const mostNamed = 3

// named writes the first of some addresses for users, with the Services that have them. It does
// not count the others: the condition would be written with each address that goes.
func named(addresses []*networkingv1.IPAddress) string {
	names := make([]string, 0, len(addresses))
	for _, ip := range addresses[:min(len(addresses), mostNamed)] {
		name := ip.Name
		if ref := ip.Spec.ParentRef; ref != nil && ref.Resource == "services" {
			name += " of Service " + object.Key{Namespace: ref.Namespace, Name: ref.Name}.String()
		}
		names = append(names, name)
	}
	text := strings.Join(names, ", ")
	if len(addresses) > mostNamed {
		text += " and others"
	}
	return text
}

// setReady applies the condition Ready, unless it is as it should be.
func (r *reconciler) setReady(ctx context.Context, cidr *networkingv1.ServiceCIDR, want metav1.Condition) error {
	want.LastTransitionTime = metav1.NewTime(r.now())
	if is := meta.FindStatusCondition(cidr.Status.Conditions, want.Type); is != nil && is.Status == want.Status {
		if is.Reason == want.Reason && is.Message == want.Message {
			return nil
		}
		want.LastTransitionTime = is.LastTransitionTime
	}
	config, err := json.Marshal(map[string]any{
		"apiVersion": networkingv1.SchemeGroupVersion.String(), "kind": kind.Kind,
		"metadata": map[string]any{"name": cidr.Name, "uid": cidr.UID},
		"status":   map[string]any{"conditions": []metav1.Condition{want}},
	})
	if err != nil {
		return err
	}
	patch := client.Patch{Type: types.ApplyPatchType, Data: config}
	if _, err := r.cidrs.Sub("status").Patch(ctx, object.KeyOf(cidr), patch, client.FieldManager(Name), client.Force()); err != nil {
		return fmt.Errorf("writing the condition %s of servicecidr %s: %w", want.Type, cidr.Name, err)
	}
	return nil
}
