// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Driver is the name of the simulated driver, in ResourceSlices and in the results of allocations.
const Driver = "devices.sim.setpoint.io"

// Class is the DeviceClass that Run creates. It has all devices of the driver.
const Class = "gpu"

// model is what devices of one kind have.
type model struct {
	name   string
	memory resource.Quantity
}

// models returns the model of each device of a Node.
func models() []model {
	small := model{name: "small", memory: resource.MustParse("16Gi")}
	large := model{name: "large", memory: resource.MustParse("80Gi")}
	return []model{small, small, large, large}
}

// class returns the DeviceClass.
func class() *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: Class},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", Driver)},
		}}},
	}
}

// deviceName is the name of the i-th device of a Node.
func deviceName(i int) string { return fmt.Sprintf("gpu-%d", i) }

// inventory returns the devices of a Node without taints.
func inventory() []resourcev1.Device {
	var all []resourcev1.Device
	for i, model := range models() {
		all = append(all, resourcev1.Device{
			Name: deviceName(i),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"model": {StringValue: new(model.name)},
				"index": {IntValue: new(int64(i))},
			},
			Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
				"memory": {Value: model.memory.DeepCopy()},
			},
		})
	}
	return all
}

// sliceName is the name of the ResourceSlice of a Node.
func sliceName(node string) string { return node + "-" + Driver }

// newSlice returns the first ResourceSlice of a Node.
func newSlice(node *corev1.Node, with []resourcev1.Device) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:            sliceName(node.Name),
			OwnerReferences: []metav1.OwnerReference{ownedBy(node)},
		},
		Spec: resourcev1.ResourceSliceSpec{
			Driver:   Driver,
			NodeName: new(node.Name),
			Pool:     resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
			Devices:  with,
		},
	}
}

func ownedBy(node *corev1.Node) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true)}
}
