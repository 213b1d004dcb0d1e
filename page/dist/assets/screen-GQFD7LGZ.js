import{d as e}from"./chunk-V5KZCUB3.js";function o(r){return e("main",{class:"page","aria-label":"Overview",children:e("h1",{children:"Overview"})})}export{o as OverviewScreen};
