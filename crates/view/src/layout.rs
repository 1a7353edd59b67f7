//! The positions of nodes, which depend only on the architecture.
//!
//! Requests flow from left to right: a service is to the right of its callers. Regions are stacked, and so
//! are zones in them. Nodes outside all regions are between the regions, nodes outside all zones between the
//! zones. The instances of a service in a zone form a block.

use std::collections::BTreeMap;

/// The distance between the centres of two instances.
const STEP: f32 = 1.0;
/// The gap between blocks, and around zones and regions.
const GAP: f32 = 1.0;
/// The gap between two columns.
const COLUMN_GAP: f32 = 3.0;

/// An instance to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutNode {
    /// The service.
    pub service: u32,
    /// The region, if it is in one.
    pub region: Option<u8>,
    /// The zone, if it is in one.
    pub zone: Option<u8>,
}

/// A region, or a zone of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Area {
    /// The region.
    pub region: u8,
    /// The zone; none: all of the region.
    pub zone: Option<u8>,
    /// The corner that is left and above, and the size.
    pub x: f32,
    /// See `x`.
    pub y: f32,
    /// See `x`.
    pub width: f32,
    /// See `x`.
    pub height: f32,
}

/// The positions of nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layout {
    /// The centre of each instance.
    pub nodes: Vec<(f32, f32)>,
    /// For each instance, its group: the instances of its service in its zone.
    pub groups_of: Vec<u32>,
    /// The groups: an instance of each, and the centre.
    pub groups: Vec<(u32, (f32, f32))>,
    /// Regions, each before its zones.
    pub areas: Vec<Area>,
    /// The size of all.
    pub width: f32,
    /// See `width`.
    pub height: f32,
}

/// Returns the column of each service: the longest path to it from services without callers.
fn depths(services: usize, calls: &[Vec<u32>]) -> Vec<u32> {
    let mut called = vec![false; services];
    for &target in calls.iter().flatten() {
        called[target as usize] = true;
    }
    let mut order = Vec::new();
    // 0: not seen, 1: being visited, 2: done. Edges back to one that is being visited do not count.
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

/// A block of instances of one service in one zone.
struct Block {
    nodes: Vec<u32>,
    columns: usize,
}

impl Block {
    fn new(nodes: Vec<u32>) -> Block {
        let columns = (nodes.len() as f64).sqrt().ceil().max(1.0) as usize;
        Block { nodes, columns }
    }

    fn width(&self) -> f32 {
        self.columns as f32 * STEP
    }

    fn height(&self) -> f32 {
        self.nodes.len().div_ceil(self.columns) as f32 * STEP
    }
}

type At = (Option<u8>, Option<u8>);

/// Places the instances of services with these calls. O(instances · log instances).
pub fn layout(instances: &[LayoutNode], calls: &[Vec<u32>]) -> Layout {
    let depth = depths(calls.len(), calls);
    let mut blocks: BTreeMap<(At, u32, u32), Vec<u32>> = BTreeMap::new();
    for (index, place) in (0..).zip(instances) {
        let column = depth[place.service as usize] * 3 + scope(place);
        let key = ((place.region, place.zone), column, place.service);
        blocks.entry(key).or_default().push(index);
    }
    let blocks: BTreeMap<_, _> = blocks
        .into_iter()
        .map(|(key, nodes)| (key, Block::new(nodes)))
        .collect();
    // A column is as wide as its widest block, and a zone as high as its highest column.
    let mut widths: BTreeMap<u32, f32> = BTreeMap::new();
    let mut heights: BTreeMap<(At, u32), f32> = BTreeMap::new();
    for (&(at, column, _), block) in &blocks {
        let width = widths.entry(column).or_default();
        *width = width.max(block.width());
        *heights.entry((at, column)).or_insert(-GAP) += block.height() + GAP;
    }
    let height_of = |at: At| {
        let columns = heights.iter().filter(|((place, _), _)| *place == at);
        columns.map(|(_, &height)| height).fold(0.0, f32::max)
    };
    let mut lefts: BTreeMap<u32, f32> = BTreeMap::new();
    let mut x = GAP;
    for (&column, &width) in &widths {
        lefts.insert(column, x);
        x += width + COLUMN_GAP;
    }
    let width = x - COLUMN_GAP + GAP;
    let edges = |is_in: &dyn Fn(At) -> bool| {
        let here = blocks.keys().filter(|(at, _, _)| is_in(*at));
        let (mut from, mut to) = (f32::INFINITY, f32::NEG_INFINITY);
        for &(_, column, _) in here {
            from = from.min(lefts[&column]);
            to = to.max(lefts[&column] + widths[&column]);
        }
        (from, to)
    };
    // Zones from above to below, then what is beside them.
    let mut areas = Vec::new();
    let mut middles: BTreeMap<At, f32> = BTreeMap::new();
    let mut y = GAP;
    let regions: std::collections::BTreeSet<u8> =
        instances.iter().filter_map(|place| place.region).collect();
    for &region in &regions {
        let top = y;
        y += GAP;
        let region_area = areas.len();
        let (left, right) = edges(&|at| at.0 == Some(region));
        areas.push(Area {
            region,
            zone: None,
            x: left - 2.0 * GAP,
            y: top,
            width: right - left + 4.0 * GAP,
            height: 0.0,
        });
        let zones: std::collections::BTreeSet<u8> = instances
            .iter()
            .filter(|place| place.region == Some(region))
            .filter_map(|place| place.zone)
            .collect();
        for zone in zones {
            let at = (Some(region), Some(zone));
            let height = height_of(at) + 2.0 * GAP;
            let (left, right) = edges(&|other| other == at);
            areas.push(Area {
                region,
                zone: Some(zone),
                x: left - GAP,
                y,
                width: right - left + 2.0 * GAP,
                height,
            });
            middles.insert(at, y + height / 2.0);
            y += height + GAP;
        }
        let alone = height_of((Some(region), None)) + 2.0 * GAP;
        y = y.max(top + alone);
        areas[region_area].height = y - top;
        middles.insert((Some(region), None), (top + y) / 2.0);
        y += 2.0 * GAP;
    }
    let height = y.max(height_of((None, None)) + 2.0 * GAP);
    middles.insert((None, None), height / 2.0);
    let mut made = Layout {
        nodes: vec![(0.0, 0.0); instances.len()],
        groups_of: vec![0; instances.len()],
        areas,
        width,
        height,
        ..Layout::default()
    };
    let mut tops: BTreeMap<(At, u32), f32> = BTreeMap::new();
    for (&(at, column, _), block) in &blocks {
        let middle = middles.get(&at).copied().unwrap_or(height / 2.0);
        let top = (tops.entry((at, column))).or_insert(middle - heights[&(at, column)] / 2.0);
        let left = lefts[&column] + (widths[&column] - block.width()) / 2.0;
        let group = made.groups.len() as u32;
        for (number, &node) in block.nodes.iter().enumerate() {
            let (row, column) = (number / block.columns, number % block.columns);
            let x = left + (column as f32 + 0.5) * STEP;
            made.nodes[node as usize] = (x, *top + (row as f32 + 0.5) * STEP);
            made.groups_of[node as usize] = group;
        }
        let centre = (left + block.width() / 2.0, *top + block.height() / 2.0);
        made.groups.push((block.nodes[0], centre));
        *top += block.height() + GAP;
    }
    made
}

/// Nodes outside all regions are to the left of nodes in a region, and those to the left of nodes in a zone.
fn scope(place: &LayoutNode) -> u32 {
    u32::from(place.region.is_some()) + u32::from(place.zone.is_some())
}

/// Returns evenly spaced points on a disc, for actors without a place.
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
        // The last calls the first, in a circle.
        let made = layout(&all, &[vec![1], vec![2, 3], vec![3], vec![1]]);
        for (a, from) in all.iter().enumerate() {
            for (b, to) in all.iter().enumerate() {
                if from.service < to.service {
                    assert!(made.nodes[a].0 < made.nodes[b].0);
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
    fn nothing_is_a_layout_too() {
        assert_eq!(layout(&[], &[]).nodes, []);
        assert_eq!(sunflower(0), []);
    }
}
