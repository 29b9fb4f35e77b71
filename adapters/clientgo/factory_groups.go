// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clientgo

import (
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/apiserverinternal"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/autoscaling"
	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/informers/certificates"
	"k8s.io/client-go/informers/coordination"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/discovery"
	"k8s.io/client-go/informers/events"
	"k8s.io/client-go/informers/extensions"
	"k8s.io/client-go/informers/flowcontrol"
	"k8s.io/client-go/informers/lifecycle"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/informers/storagemigration"
)

// The groups of the factory, with the constructors that client-go generates.

// Admissionregistration returns the informers of the group.
func (f *factory) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, f.settings.namespace, f.settings.tweak)
}

// Internal returns the informers of the group.
func (f *factory) Internal() apiserverinternal.Interface {
	return apiserverinternal.New(f, f.settings.namespace, f.settings.tweak)
}

// Apps returns the informers of the group.
func (f *factory) Apps() apps.Interface {
	return apps.New(f, f.settings.namespace, f.settings.tweak)
}

// Autoscaling returns the informers of the group.
func (f *factory) Autoscaling() autoscaling.Interface {
	return autoscaling.New(f, f.settings.namespace, f.settings.tweak)
}

// Batch returns the informers of the group.
func (f *factory) Batch() batch.Interface {
	return batch.New(f, f.settings.namespace, f.settings.tweak)
}

// Certificates returns the informers of the group.
func (f *factory) Certificates() certificates.Interface {
	return certificates.New(f, f.settings.namespace, f.settings.tweak)
}

// Coordination returns the informers of the group.
func (f *factory) Coordination() coordination.Interface {
	return coordination.New(f, f.settings.namespace, f.settings.tweak)
}

// Core returns the informers of the group.
func (f *factory) Core() core.Interface {
	return core.New(f, f.settings.namespace, f.settings.tweak)
}

// Discovery returns the informers of the group.
func (f *factory) Discovery() discovery.Interface {
	return discovery.New(f, f.settings.namespace, f.settings.tweak)
}

// Events returns the informers of the group.
func (f *factory) Events() events.Interface {
	return events.New(f, f.settings.namespace, f.settings.tweak)
}

// Extensions returns the informers of the group.
func (f *factory) Extensions() extensions.Interface {
	return extensions.New(f, f.settings.namespace, f.settings.tweak)
}

// Flowcontrol returns the informers of the group.
func (f *factory) Flowcontrol() flowcontrol.Interface {
	return flowcontrol.New(f, f.settings.namespace, f.settings.tweak)
}

// Lifecycle returns the informers of the group.
func (f *factory) Lifecycle() lifecycle.Interface {
	return lifecycle.New(f, f.settings.namespace, f.settings.tweak)
}

// Networking returns the informers of the group.
func (f *factory) Networking() networking.Interface {
	return networking.New(f, f.settings.namespace, f.settings.tweak)
}

// Node returns the informers of the group.
func (f *factory) Node() node.Interface {
	return node.New(f, f.settings.namespace, f.settings.tweak)
}

// Policy returns the informers of the group.
func (f *factory) Policy() policy.Interface {
	return policy.New(f, f.settings.namespace, f.settings.tweak)
}

// Rbac returns the informers of the group.
func (f *factory) Rbac() rbac.Interface {
	return rbac.New(f, f.settings.namespace, f.settings.tweak)
}

// Resource returns the informers of the group.
func (f *factory) Resource() resource.Interface {
	return resource.New(f, f.settings.namespace, f.settings.tweak)
}

// Scheduling returns the informers of the group.
func (f *factory) Scheduling() scheduling.Interface {
	return scheduling.New(f, f.settings.namespace, f.settings.tweak)
}

// Storage returns the informers of the group.
func (f *factory) Storage() storage.Interface {
	return storage.New(f, f.settings.namespace, f.settings.tweak)
}

// Storagemigration returns the informers of the group.
func (f *factory) Storagemigration() storagemigration.Interface {
	return storagemigration.New(f, f.settings.namespace, f.settings.tweak)
}
