//! Computes the positions of nodes. The positions depend only on the architecture, so they are equal in all runs.
//!
//! Each service has a cell of fixed size for its instances in a zone, so that there is space for the service's name
//! with any number of instances. Requests go from left to right: a service is to the right of its callers. The zones of
//! a region are arranged from top to bottom. Regions are arranged side by side, below the services that are in no
//! region; the page arranges them in rows that suit its window.

use std::collections::{BTreeMap, BTreeSet};

/// The size of a cell.
const CELL: (f32, f32) = (3.0, 2.2);
/// The part of a cell's height that is reserved for the name.
const NAME: f32 = 0.5;
/// The largest distance between the centres of two instances in a cell, which is also the size of a single instance.
const STEP: f32 = 1.0;
/// The margin around zones and regions.
const GAP: f32 = 0.6;
/// The height above the cells of a zone or region that is reserved for its name.
const TITLE: f32 = 1.3;

/// An instance to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutNode {
    /// The number of the service.
    pub service: u32,
    /// The number of the region, if the node is in one.
    pub region: Option<u8>,
    /// The number of the zone, if the node is in one.
    pub zone: Option<u8>,
}

/// The rectangle of a region, or of one of its zones.
#[derive(Clone, Debug, PartialEq)]
pub struct Area {
    /// The number of the region.
    pub region: u8,
    /// The number of the zone; `None` for the rectangle of the whole region.
    pub zone: Option<u8>,
    /// The left edge.
    pub x: f32,
    /// The upper edge.
    pub y: f32,
    /// The width of the area.
    pub width: f32,
    /// The height of the area.
    pub height: f32,
}

/// The positions of instances, groups and areas.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The centre of each instance.
    pub nodes: Vec<(f32, f32)>,
    /// The largest diameter of each instance.
    pub sizes: Vec<f32>,
    /// For each instance, the number of its group: the instances of its service in its zone.
    pub groups_of: Vec<u32>,
    /// The groups, each with one of its instances and its centre.
    pub groups: Vec<(u32, (f32, f32))>,
    /// The rectangles of the regions, each followed by its zones.
    pub areas: Vec<Area>,
    /// The width of the complete layout.
    pub width: f32,
    /// The height of the complete layout.
    pub height: f32,
}

/// Returns the column of each service: the length of the longest path to it from services without callers.
fn depths(services: usize, calls: &[Vec<u32>]) -> Vec<u32> {
    let mut called = vec![false; services];
    for &target in calls.iter().flatten() {
        called[target as usize] = true;
    }
    let mut order = Vec::new();
    // 0: not seen, 1: being visited, 2: done. Edges back to a service that is being visited do not count.
    let mut state = vec![0u8; services];
    let mut back = std::collections::HashSet::new();
    let roots = (0..services).filter(|&s| !called[s]).chain(0..services);
    for root in roots {
        if state[root] != 0 {
            continue;
        }
        let mut stack = vec![(root, 0)];
        state[root] = 1;
        while let Some((at, next)) = stack.last_mut() {
            let at = *at;
            match calls[at].get(*next) {
                Some(&to) => {
                    *next += 1;
                    match state[to as usize] {
                        0 => {
                            state[to as usize] = 1;
                            stack.push((to as usize, 0));
                        }
                        1 => {
                            back.insert((at, to));
                        }
                        _ => {}
                    }
                }
                None => {
                    state[at] = 2;
                    order.push(at);
                    stack.pop();
                }
            }
        }
    }
    let mut depth = vec![0; services];
    for &at in order.iter().rev() {
        for &to in &calls[at] {
            if !back.contains(&(at, to)) {
                depth[to as usize] = depth[to as usize].max(depth[at] + 1);
            }
        }
    }
    depth
}

type At = (Option<u8>, Option<u8>);

/// The groups by location and service, each with its instances.
type Groups = BTreeMap<(At, u32), Vec<u32>>;

/// A part of the layout: cells and areas, with positions relative to the part's upper left corner.
#[derive(Default)]
struct Part {
    /// The centres of cells.
    cells: Vec<((At, u32), (f32, f32))>,
    areas: Vec<Area>,
    width: f32,
    height: f32,
}

impl Part {
    /// Adds the contents of a part at a position.
    fn add(&mut self, part: Part, x: f32, y: f32) {
        self.width = self.width.max(x + part.width);
        self.height = self.height.max(y + part.height);
        let cells = part.cells.into_iter();
        self.cells
            .extend(cells.map(|(group, at)| (group, (at.0 + x, at.1 + y))));
        self.areas.extend(part.areas.into_iter().map(|area| Area {
            x: area.x + x,
            y: area.y + y,
            ..area
        }));
    }

    /// Puts a frame with a name around the part.
    fn framed(self, region: u8, zone: Option<u8>) -> Part {
        let (width, height) = (self.width + 2.0 * GAP, self.height + TITLE + GAP / 2.0);
        let area = Area {
            region,
            zone,
            x: 0.0,
            y: 0.0,
            width,
            height,
        };
        let mut framed = Part {
            areas: vec![area],
            width,
            height,
            ..Part::default()
        };
        framed.add(self, GAP, TITLE);
        framed
    }

    /// Arranges parts from left to right with their centres on a line.
    fn row(parts: Vec<Part>) -> Part {
        let height = parts.iter().map(|part| part.height).fold(0.0, f32::max);
        let mut row = Part::default();
        for part in parts.into_iter().filter(|part| part.width > 0.0) {
            let (x, y) = (
                row.width + if row.width > 0.0 { GAP } else { 0.0 },
                (height - part.height) / 2.0,
            );
            row.add(part, x, y);
        }
        row
    }

    /// Arranges parts from top to bottom with their centres on a line.
    fn stack(parts: Vec<Part>) -> Part {
        let width = parts.iter().map(|part| part.width).fold(0.0, f32::max);
        let mut stack = Part::default();
        for part in parts.into_iter().filter(|part| part.height > 0.0) {
            let (x, y) = (
                (width - part.width) / 2.0,
                stack.height + if stack.height > 0.0 { GAP } else { 0.0 },
            );
            stack.add(part, x, y);
        }
        stack
    }
}

/// The data from which the parts are made.
struct Cells<'a> {
    groups: Groups,
    depths: Vec<u32>,
    calls: &'a [Vec<u32>],
}

impl Cells<'_> {
    fn services(&self, at: At) -> impl Iterator<Item = u32> {
        let found = self.groups.range((at, 0)..=(at, u32::MAX));
        found.map(|(&(_, service), _)| service)
    }

    /// Returns the cells of some services of a location in columns by depth; `ranks` are the depths that have a column.
    fn columns(&self, at: At, services: &[u32], ranks: &BTreeSet<u32>) -> Part {
        // Columns that would be much taller than the part is wide are divided.
        let most = (services.len() as f32).sqrt().ceil().max(4.0) as usize;
        let mut part = Part::default();
        let mut rows: BTreeMap<u32, f32> = BTreeMap::new();
        let tallest = ranks.iter().map(|rank| {
            services
                .iter()
                .filter(|&&s| self.depths[s as usize] == *rank)
                .count()
        });
        let height = tallest.max().unwrap_or(0).min(most) as f32 * CELL.1;
        let mut x = 0.0;
        for &rank in ranks {
            let here = services
                .iter()
                .filter(|&&s| self.depths[s as usize] == rank);
            // A service is placed at the height of its callers, so that fewer edges cross.
            let mut column: Vec<(f32, u32)> = here
                .map(|&service| {
                    let callers = rows
                        .iter()
                        .filter(|(from, _)| self.calls[**from as usize].contains(&service));
                    let (sum, count) = callers.fold((0.0, 0.0), |(sum, count), (_, row)| {
                        (sum + row, count + 1.0)
                    });
                    (if count > 0.0 { sum / count } else { 0.0 }, service)
                })
                .collect();
            column.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            for column in column.chunks(most) {
                let top = height / 2.0 - column.len() as f32 * CELL.1 / 2.0;
                for (row, &(_, service)) in column.iter().enumerate() {
                    let y = top + (row as f32 + 0.5) * CELL.1;
                    rows.insert(service, y - height / 2.0);
                    part.cells.push(((at, service), (x + CELL.0 / 2.0, y)));
                }
                x += CELL.0;
            }
            if column.is_empty() {
                x += CELL.0;
            }
        }
        (part.width, part.height) = (x, height);
        part
    }

    /// Returns the cells of a location's own services in two parts: the services at a depth of at most `depth`, which
    /// are placed before the areas inside the location, and the other services, which are placed after them.
    fn around(&self, at: At, depth: u32) -> [Part; 2] {
        let (before, after): (Vec<u32>, Vec<u32>) = self
            .services(at)
            .partition(|&service| self.depths[service as usize] <= depth);
        [before, after]
            .map(|services| self.columns(at, &services, &self.ranks(services.iter().copied())))
    }

    fn ranks(&self, services: impl Iterator<Item = u32>) -> BTreeSet<u32> {
        services
            .map(|service| self.depths[service as usize])
            .collect()
    }

    fn region(&self, region: u8) -> Part {
        let of = |at: &At| at.0 == Some(region) && at.1.is_some();
        let zones: BTreeSet<At> = self.groups.keys().map(|(at, _)| *at).filter(of).collect();
        let ranks = self.ranks(zones.iter().flat_map(|&at| self.services(at)));
        let inside = zones.iter().map(|&at| {
            let services: Vec<u32> = self.services(at).collect();
            self.columns(at, &services, &ranks).framed(region, at.1)
        });
        let inside = Part::stack(inside.collect());
        let [before, after] = self.around(
            (Some(region), None),
            ranks.first().copied().unwrap_or(u32::MAX),
        );
        Part::row(vec![before, inside, after]).framed(region, None)
    }
}

/// Computes the positions of instances of services; `calls` has the services that each service calls. O(instances · log
/// instances).
///
/// ```
/// use corsair_view::{LayoutNode, layout};
///
/// let of = |service| LayoutNode { service, region: None, zone: None };
/// // Service 0 calls service 1, which has two instances.
/// let placed = layout(&[of(0), of(1), of(1)], &[vec![1], vec![]]);
/// assert!(placed.nodes[0].0 < placed.nodes[1].0, "callers stand on the left");
/// ```
pub fn layout(instances: &[LayoutNode], calls: &[Vec<u32>]) -> Layout {
    let mut groups = Groups::new();
    for (index, place) in (0..).zip(instances) {
        groups
            .entry(((place.region, place.zone), place.service))
            .or_default()
            .push(index);
    }
    let cells = Cells {
        groups,
        depths: depths(calls.len(), calls),
        calls,
    };
    let regions: BTreeSet<u8> = instances.iter().filter_map(|place| place.region).collect();
    let inside = regions.iter().map(|&region| cells.region(region)).collect();
    let in_regions = instances.iter().filter(|place| place.region.is_some());
    let first = in_regions
        .map(|place| cells.depths[place.service as usize])
        .min();
    let [before, after] = cells.around((None, None), first.unwrap_or(u32::MAX));
    let parts = vec![before, Part::row(inside), after];
    let all = if regions.len() > 1 {
        Part::stack(parts)
    } else {
        Part::row(parts)
    };
    let mut made = Layout {
        nodes: vec![(0.0, 0.0); instances.len()],
        sizes: vec![STEP; instances.len()],
        groups_of: vec![0; instances.len()],
        width: all.width + 2.0 * GAP,
        height: all.height + 2.0 * GAP,
        ..Layout::default()
    };
    let mut framed = Part::default();
    framed.add(all, GAP, GAP);
    made.areas = framed.areas;
    for (key, centre) in framed.cells {
        made.fill(&cells.groups[&key], centre);
    }
    made
}

impl Layout {
    /// Computes the positions of the instances of a group in its cell.
    fn fill(&mut self, nodes: &[u32], middle: (f32, f32)) {
        // The name of the group is below the instances.
        let centre = (middle.0, middle.1 - NAME / 2.0);
        let (wide, high) = (CELL.0 - 0.4, CELL.1 - NAME - 0.1);
        let columns = (nodes.len() as f32 * wide / high).sqrt().ceil().max(1.0) as usize;
        let columns = columns.min(nodes.len());
        let rows = nodes.len().div_ceil(columns);
        let step = STEP.min(wide / columns as f32).min(high / rows as f32);
        for (number, &node) in nodes.iter().enumerate() {
            let (row, column) = (number / columns, number % columns);
            let x = centre.0 + (column as f32 - (columns - 1) as f32 / 2.0) * step;
            let y = centre.1 + (row as f32 - (rows - 1) as f32 / 2.0) * step;
            self.nodes[node as usize] = (x, y);
            self.sizes[node as usize] = step;
            self.groups_of[node as usize] = self.groups.len() as u32;
        }
        self.groups.push((nodes[0], centre));
    }
}

/// Returns points on a disc at about equal distances from their neighbours, for actors without a location.
pub(crate) fn sunflower(count: u32) -> Vec<(f32, f32)> {
    let golden = std::f64::consts::PI * (3.0 - 5f64.sqrt());
    let radius = f64::from(count).sqrt();
    let point = |n: u32| {
        let (r, angle) = ((f64::from(n) + 0.5).sqrt(), f64::from(n) * golden);
        let at = |part: f64| (radius + r * part + 1.0) as f32;
        (at(angle.cos()), at(angle.sin()))
    };
    (0..count).map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(service: u32, region: u8, zone: u8) -> LayoutNode {
        LayoutNode {
            service,
            region: Some(region),
            zone: Some(zone),
        }
    }

    #[test]
    fn callers_stand_left_of_those_they_call_and_no_two_instances_on_one_place() {
        let everywhere = LayoutNode {
            service: 0,
            region: None,
            zone: None,
        };
        let mut all = vec![everywhere];
        for region in 0..2 {
            for zone in 0..3 {
                all.extend([1, 1, 1, 2, 2, 3].map(|service| place(service, region, zone)));
            }
        }
        // The last service calls the first one, so the calls form a cycle.
        let made = layout(&all, &[vec![1], vec![2, 3], vec![3], vec![1]]);
        for (a, from) in all.iter().enumerate() {
            for (b, to) in all.iter().enumerate() {
                if from.service < to.service && from.region == to.region {
                    assert!(made.nodes[a].0 < made.nodes[b].0);
                }
                // Services without a region are above the regions, which are side by side.
                if from.region < to.region {
                    let is_above = made.nodes[a].1 < made.nodes[b].1;
                    let is_left = made.nodes[a].0 < made.nodes[b].0;
                    assert!(if from.region.is_none() {
                        is_above
                    } else {
                        is_left
                    });
                }
                assert!(a == b || made.nodes[a] != made.nodes[b]);
            }
        }
        assert_eq!((made.groups.len(), made.areas.len()), (1 + 6 * 3, 2 + 6));
        assert_eq!(made, layout(&all, &[vec![1], vec![2, 3], vec![3], vec![1]]));
    }

    #[test]
    fn areas_contain_their_instances_and_do_not_overlap() {
        let mut all = Vec::new();
        for zone in 0..3 {
            all.extend((0..40).map(|_| place(0, 0, zone)));
            all.extend((0..3).map(|_| place(1, 0, zone)));
        }
        let made = layout(&all, &[vec![1], vec![]]);
        let zones = || made.areas.iter().filter(|area| area.zone.is_some());
        for (node, place) in made.nodes.iter().zip(&all) {
            let area = zones().find(|area| area.zone == place.zone).unwrap();
            assert!(node.0 > area.x && node.0 < area.x + area.width);
            assert!(node.1 > area.y && node.1 < area.y + area.height);
        }
        let list: Vec<_> = zones().collect();
        for pair in list.windows(2) {
            assert!(pair[0].y + pair[0].height <= pair[1].y);
        }
    }

    #[test]
    fn the_size_of_the_drawing_does_not_depend_on_the_number_of_instances() {
        let size = |count: usize| {
            let mut all = vec![place(0, 0, 0); count];
            all.extend(vec![place(1, 0, 1); count]);
            let made = layout(&all, &[vec![1], vec![]]);
            let apart = (made.nodes[0].0 - made.nodes[1].0).abs();
            assert!(apart >= made.sizes[0] * 0.99, "{apart}");
            (made.width, made.height)
        };
        assert_eq!(size(2), size(900));
    }

    #[test]
    fn nothing_is_a_layout_too() {
        assert_eq!(layout(&[], &[]).nodes, []);
        assert_eq!(sunflower(0), []);
    }
}
