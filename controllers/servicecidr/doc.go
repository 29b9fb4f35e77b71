// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package servicecidr keeps ServiceCIDRs from being removed while their addresses are in use.
//
//	ServiceCIDR kubernetes   10.96.0.0/16 ──┐
//	ServiceCIDR more         10.97.0.0/16   ├─ IPAddress 10.96.0.10 ─ Service kube-system/dns
//	ServiceCIDR part         10.96.0.0/24 ──┘
//
// An API server allocates the addresses of Services from the ServiceCIDRs that are ready. If the
// last ServiceCIDR with an address were removed, the address would belong to none.
//
// # What it watches and writes
//
// It watches ServiceCIDRs and IPAddresses. It writes the finalizer
// networking.k8s.io/service-cidr-finalizer and the condition Ready of ServiceCIDRs, the
// condition by server-side apply as service-cidr-controller.
//
// # What holds
//
//   - A ServiceCIDR gets the finalizer, and then the condition Ready=True.
//   - A ServiceCIDR that is being deleted keeps the finalizer while it has an address that no
//     other ServiceCIDR has that is ready and not being deleted. Its condition Ready is then
//     False, with the reason Terminating, and names such addresses and their Services.
//   - The finalizer is removed 10 s after the deletion at the earliest: API servers have to hear
//     of the deletion before, so that they allocate no more addresses.
//   - Before the finalizer is removed, ServiceCIDRs and IPAddresses are read from the server.
//   - The network address of a range, and the last address of an IPv4 range, are never
//     allocated, so they hold nothing.
//
// # What differs from kube-controller-manager
//
// Behaviour is that of its controller of the same name
// (k8s.io/kubernetes/pkg/controller/servicecidrs), with these differences:
//
//   - Two ServiceCIDRs with the same range that are deleted together both go, with their
//     addresses in use, because each counts the other one. Here a ServiceCIDR that is being
//     deleted does not count.
//   - It decides by its cache alone.
//   - Its condition does not say which addresses are in use.
//   - A ServiceCIDR that stays because another one is not ready looks again only when an address
//     changes. Here each change of a ServiceCIDR that shares addresses starts a run.
package servicecidr
